"""Do the codes of a codebook start where the encoder's outputs are, and apart from one another?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.initial import at_start
from trainwreck.code.rehearsal.questions.quantising import lookups
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, users
from trainwreck.code.rehearsal.questions.terms import number_of

FAR = 3.0
"""Root mean square of the codes. Outputs of layers with torch's own weights, or of a normalisation, lie within about 1;
the code that is nearest to zero is then nearest to all of them (a judgement: torch's own ``Embedding`` has 1)."""
CONSTANT = frozenset(["zeros_", "ones_", "constant_", "fill_", "zero_", "zero", "fill"])
CONSTANTS = frozenset(["zeros", "ones", "full", "zeros_like", "ones_like", "full_like"])


def badly_started(run: Rehearsing) -> Iterator[Answer]:
    """Codes that are drawn far from where the encoder's outputs lie, or that are all the same."""
    start = min((e.serial for e in run.tape if e.name == "backward"), default=0)
    told: set[int] = set()
    for found in lookups(run):
        codes = found.codes
        if id(codes) in told or codes.op not in ("param", "buffer") or _normalised(run, codes):
            continue
        told.add(id(codes))
        proof = (found.node.place,) if found.node.place is not None else ()
        if codes.op == "buffer":
            made = codes.inputs[0] if codes.inputs else None
            constant = isinstance(made, Node) and made.op in CONSTANTS and made.place is not None
            if constant and isinstance(made, Node) and made.place is not None and not _set_once(codes):
                yield Answer(made.place, "all codes start as the same vector: one is nearest to everything", proof)
            continue
        known = at_start(run, codes, start) or _multiplied(codes, start)
        same = _all_same(codes)
        if same is not None:
            yield Answer(same, "all codes start as the same vector: one of them is nearest to everything", proof)
        elif known is not None and known[0] > FAR:
            text = f"the codes start with a size of about {known[0]:.2g}, far from what an encoder gives at first"
            yield Answer(known[1], text, proof)


def learned_twice(run: Rehearsing) -> Iterator[Answer]:
    """Codes that a backward reaches and an optimizer holds, and that each turn overwrites with averages of data."""
    moved = {id(p) for s in steps(run) if s.turns for p in held(s)}
    reached = {id(p) for e in run.tape if e.name == "backward" and e.turns for p in e.state.get("reached", ())}
    told: set[int] = set()
    for found in lookups(run):
        codes = found.codes
        if codes.op != "param" or id(codes) in told or id(codes) not in moved & reached or codes.place is None:
            continue
        written = [w for w in codes.writes if w.turns and w.name in WRITTEN and _of_data(w.args, codes)]
        if written and written[0].place is not None:
            told.add(id(codes))
            text = "the codes are a parameter that gradients move, and each step overwrites them with averages too"
            yield Answer(codes.place, text, (written[0].place,))


COUNTS = frozenset(["one_hot", "bincount", "scatter_add", "scatter_add_", "index_add", "index_add_"])
WRITTEN = frozenset(["copy_", "lerp_", "add_"])


def _of_data(args: tuple[object, ...], codes: Node) -> bool:
    """True for averages of what codes were assigned to; not for codes that are scaled, or drawn anew where unused."""
    if any(isinstance(a, Node) and a.op in ("setitem", "where", "index_copy", "index_put") for a in args):
        return False
    behind = [n for a in args for n in ancestors(a, through=lambda n: n is not codes)]
    kept = [w for n in behind if n.op == "buffer" for w in n.writes]
    behind += [n for w in kept for a in w.args for n in ancestors(a, through=lambda n: n is not codes)]
    counts = any(n.op in COUNTS for n in behind)
    return counts and any(n.op == "batch" or n.op in ("linear", "conv1d", "conv2d") for n in behind)


def _multiplied(codes: Node, start: int) -> tuple[float, Place] | None:
    """The size of torch's own codes (an ``Embedding`` has 1) that are multiplied by a number, and where."""
    writes = [w for w in codes.writes if w.name != "requires_grad" and w.serial < start and not _echo(w.args)]
    if codes.owner is None or codes.owner.name != "Embedding" or len(writes) != 1 or writes[0].place is None:
        return None
    by = number_of(writes[0].args[0]) if writes[0].args else None
    return (abs(by), writes[0].place) if writes[0].name == "mul_" and by is not None else None


def _all_same(codes: Node) -> Place | None:
    """Where every code is set to one constant, if nothing is written into the codes beside."""
    writes = [w for w in codes.writes if w.name != "requires_grad" and not _echo(w.args)]
    if writes:
        constant = len(writes) == 1 and writes[0].name in CONSTANT and not writes[0].maybe and not writes[0].turns
        return writes[0].place if constant else None
    made = codes.inputs[0] if codes.inputs else None
    return codes.place if isinstance(made, Node) and made.op in CONSTANTS else None


def _set_once(codes: Node) -> bool:
    """True where the codes may be set to something else before they are moved on: to the first data, say."""
    writes = [w for w in codes.writes if w.name != "requires_grad"]
    return any(w.maybe or not w.turns for w in writes) or len({id(w.place[0]) for w in writes if w.place}) > 1


def _echo(args: tuple[object, ...]) -> bool:
    """True for what a change of ``.data`` in place leaves behind itself."""
    return bool(args) and isinstance(args[0], Node) and args[0].options.get("inplace") is True


def _normalised(run: Rehearsing, codes: Node) -> bool:
    """True where the lengths of the codes do not count."""
    todo, seen = [codes], {id(codes)}
    while todo:
        for user in users(run).get(id(todo.pop()), ()):
            if user.op in ("normalize", "cosine_similarity", "layer_norm", "batch_norm", "norm"):
                return True
            if user.op in STRUCTURE and user.op != "getitem" and id(user) not in seen:
                seen.add(id(user))
                todo.append(user)
    return False
