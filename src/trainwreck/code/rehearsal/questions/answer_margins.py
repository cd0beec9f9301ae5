"""Margins between two answers, put together of the likelihoods of their tokens: signs, masks and the reference."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.padded import padded
from trainwreck.code.rehearsal.questions.policy import log_probability
from trainwreck.code.rehearsal.questions.preferences import Margin, margins, named
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained, users
from trainwreck.code.rehearsal.questions.trails import Trail, trail

PICKS = frozenset(["gather", "take_along_dim"])
LIKE = frozenset(["zeros_like", "ones_like", "ne", "eq", "full_like"])
KEPT = frozenset("squeeze unsqueeze view reshape flatten float neg contiguous div mul".split())


def both_raised(run: Rehearsing) -> Iterator[Answer]:
    """The likelihoods of the better and of the worse answer have one sign in the margin between them."""
    for margin in margins(run):
        live = [t for t in margin.found if t.node.grad and t.sign and log_probability(t.node) is not None]
        if not margin.rewarded or len(live) != 2 or live[0].sign != live[1].sign:
            continue
        kinds = {named(t.node) for t in live}
        sums = [n for n in live[-1].path if n.op in ("add", "sub") and n.place is not None]
        place = sums[0].place if sums else margin.node.place
        if kinds == {1, -1} and place is not None:
            text = "both answers are pushed the same way: the one that is worse has to be taken off"
            yield Answer(place, text, (margin.node.place,) if margin.node.place is not None else ())
            return


def reference_unused(run: Rehearsing) -> Iterator[Answer]:
    """A frozen copy of the policy is asked about both answers, and the margin goes without what it says."""
    learning = {id(p) for s in steps(run) for p in held(s)}
    for margin in margins(run):
        if any(not t.node.grad and t.sign for t in margin.found) or not margin.rewarded or not _policies(margin):
            continue
        behind = {id(n) for n in ancestors(margin.node)}
        for event in run.tape:
            frozen = event.subject
            if event.name != "forward" or event.turns != margin.event.turns or not is_module(frozen):
                continue
            own = {id(p) for p in run.parameters(frozen)[0]}
            copied = frozen.copy_of is not None and own and not own & learning
            if copied and not event.grad_mode and not any(id(p) in behind for p in parts(event.result)):
                inner = margin.found[0].path
                place = next((n.place for n in reversed(inner) if n.op == "sub" and n.place), margin.node.place)
                if place is not None:
                    text = "the reference is asked about both answers, and nothing of it is in the margin"
                    yield Answer(place, text, tuple(p for p in (event.place,) if p is not None))
                    return


def _policies(margin: Margin) -> bool:
    return sum(t.node.grad and log_probability(t.node) is not None for t in margin.found) == 2


def probabilities_summed(run: Rehearsing) -> Iterator[Answer]:
    """The probabilities of tokens are summed up where their logarithms belong."""
    for margin in margins(run):
        for term in margin.found:
            soft = term.node
            picked = any(n.op in PICKS for n in term.path)
            if soft.op == "softmax" and soft.grad and picked and margin.rewarded and soft.place is not None:
                text = "the probabilities of tokens are added up here: log-probabilities are"
                yield Answer(soft.place, text, (margin.node.place,) if margin.node.place is not None else ())
                return


# ---------------------------------------------------------------------- masks
def _weighed(run: Rehearsing, scored: Node) -> Iterator[tuple[Node, Node]]:
    """(product, mask): what the likelihoods of tokens are multiplied with, before they are summed up."""
    level, table = [scored], users(run)
    for _ in range(6):
        following = [u for n in level for u in table.get(id(n), ()) if u.grad]
        for user in following:
            for mask in user.inputs[:2] if user.op == "mul" else ():
                if isinstance(mask, Node) and not mask.grad:
                    yield user, mask
        level = [u for u in following if u.op in KEPT - {"mul"} or _first_only(u)]


def _first_only(node: Node) -> bool:
    """``x[..., 0]``: the axis of one element that a gather leaves."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    return isinstance(index, tuple) and len(index) == 2 and index[0] is Ellipsis and index[1] == 0


def _tokens(scored: Node) -> tuple[Value, Trail] | None:
    rest = [i for i in (*scored.inputs[1:], *scored.options.values()) if isinstance(i, Node)]
    found = trail(rest[0]) if rest else None
    return (rest[0], found) if found is not None else None


def mask_beside(run: Rehearsing) -> Iterator[Answer]:
    """The mask was made for the very tokens, and is cut otherwise than these: it hides a neighbour of each."""
    told: set[int] = set()
    for scored in trained(run):
        tokens = _tokens(scored) if scored.op in PICKS else None
        if tokens is None:
            continue
        for product, mask in _weighed(run, scored):
            made = trail(mask)
            if made is None or made.symbols != tokens[1].symbols or product.place is None:
                continue
            like = _like(made.root)
            same = made.root is tokens[1].root or like is tokens[1].root
            if same and made.start != tokens[1].start and id(product.place[0]) not in told:
                told.add(id(product.place[0]))
                cut = made.cut.place if made.cut is not None else None
                text = f"the tokens begin at {tokens[1].start} of their rows and the mask at {made.start}"
                yield Answer(cut or product.place, text, (scored.place,) if scored.place is not None else ())
                return


def _like(root: Node) -> Node | None:
    """The tokens that a mask was made for."""
    at: Value = root
    for _ in range(8):
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op in LIKE:
            made = trail(at.inputs[0])
            return made.root if made is not None else None
        at = at.inputs[0] if at.op in STRUCTURE | {"setitem", "batch", "float", "bool"} else None
    return None


def unmasked_sum(run: Rehearsing) -> Iterator[Answer]:
    """The likelihoods of padded tokens are summed up in the margin with that of the padding."""
    table = users(run)
    for margin in margins(run):
        if not margin.rewarded:
            continue
        for scored in ancestors(margin.node, through=lambda n: n.op not in ("param", "embedding")):
            tokens = _tokens(scored) if scored.op in PICKS and scored.grad else None
            if tokens is None or padded(tokens[0]) is None:
                continue
            after = [scored]
            for _ in range(4):
                after = [u for n in after for u in table.get(id(n), ()) if u.grad]
                if not all(u.op in STRUCTURE - {"getitem"} or _first_only(u) for u in after):
                    break
            sums = [u for u in after if u.op in ("sum", "mean")]
            if sums and len(sums) == len(after) and sums[0].place is not None:
                text = "the padding's likelihood is summed up with that of the tokens"
                yield Answer(sums[0].place, text, (scored.place,) if scored.place is not None else ())
                return
