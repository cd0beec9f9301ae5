"""Token models: which position of the targets meets which position of the inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.attending import attention, blind_mask, convolved, cropped, handed_mask
from trainwreck.code.rehearsal.questions.roles import given, losses
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.code.rehearsal.questions.trails import END, MOVES, Trail, put_behind, start_of, trail
from trainwreck.core.row import Row

RECURRENT = frozenset(["lstm", "gru", "rnn"])
RESHAPES = frozenset(["view", "reshape", "unflatten", "rearrange", "permute", "transpose", "movedim"])
TRANSDUCED = frozenset(["rnnt_loss", "rnntloss"])
"""Losses over all ways to lay the tokens along the frames."""


class Shift(Row):
    """A loss over tokens: how many positions the target lies ahead of the token that the network saw last."""

    loss: Node
    ahead: int
    fed: Node
    target: Trail
    logits: Node
    """The output of the network, before it was sliced for the loss."""
    sliced: Node | None
    moved: bool
    """True where that slice leaves positions out at the front, or counts from the end."""


def shifts(run: Rehearsing) -> list[Shift]:
    if "shifts" not in run.memo:
        scored = losses(run, "cross_entropy", "nll_loss", "gather", "take_along_dim", *TRANSDUCED)
        run.memo["shifts"] = [s for loss in scored if (s := _shift(loss)) is not None]
    found: list[Shift] = run.memo["shifts"]
    return found


def walked_shifts(run: Rehearsing) -> list[Shift]:
    """The same, also of a network that walks over the positions one by one and puts its answers behind each other."""
    if "walked-shifts" not in run.memo:
        scored = losses(run, "cross_entropy", "nll_loss")
        run.memo["walked-shifts"] = [s for loss in scored if (s := _shift(loss, _walked)) is not None]
    found: list[Shift] = run.memo["walked-shifts"]
    return found


def _walked(cut: Node, loss: Node) -> bool:
    """True for ``x[:, t]`` in a loop over ``t`` from the first position on, inside of a step of training."""
    turn = cut.turns[-1] if len(cut.turns) > len(loss.turns) else None
    if turn is None or not isinstance(turn.over, Items) or turn.over.kind != "range" or turn.over.items[:1] != [0]:
        return False
    index = cut.inputs[1] if isinstance(cut.inputs[1], tuple) else (cut.inputs[1],)
    at = turn.over.items[min(turn.index, len(turn.over.items) - 1)]
    return all(i is at or i == turn.index for i in index if isinstance(i, int | Node) and not isinstance(i, bool))


def _shift(loss: Node, passed: Callable[[Node, Node], bool] | None = None) -> Shift | None:
    scores, target_of = _scored(loss)
    target = trail(target_of)
    head = _head(scores)
    if target is None or head is None:
        return None
    logits, moved, ends, sliced = head
    fed: list[tuple[Node, Trail]] = []
    cuts: list[Node] = []
    for node in ancestors(logits, through=lambda n: not n.op.endswith("_like")):
        if node.op == "getitem" and node.grad and _cuts_front(node) and not (passed and passed(node, loss)):
            cuts.append(node)
        if node.op not in ("embedding", "one_hot") or not node.inputs:
            continue
        found = trail(node.inputs[0])
        if found is None:
            return None
        if found.root.op not in ("arange", "argument"):
            fed.append((node, found))
    fed = [(n, t) for n, t in fed if n.turns[: len(loss.turns)] == loss.turns] or fed  # not what a state carries over
    mine = [n for n, t in fed if t.root is target.root] or [n for n, _ in fed]
    if any(_over(cut, node) for cut in cuts for node in mine) or _one_of_several(logits):
        return None
    symbols = Counter(dict(target.symbols))
    start = target.start
    if not any(t.root is target.root for _, t in fed):
        tail = next((n for node, _ in fed if (n := _tail(node.inputs[0], target)) is not None), None)
        if tail is None or symbols:
            return None
        fed = [(node, target._replace(start=0)) for node, _ in fed if _tail(node.inputs[0], target) is not None]
        symbols, start = Counter([END]), -tail
    symbols.subtract([END] * ends)
    left = {key: count for key, count in symbols.items() if count}
    ours = [(n, t) for n, t in fed if t.root is target.root and dict(t.symbols) == left]
    if not ours or len({t.start for _, t in ours}) > 1 or len(ours) < len([n for n, t in fed if t.root is target.root]):
        return None
    return Shift(loss, start - ours[0][1].start - moved, ours[0][0], target, logits, sliced, bool(moved or ends))


def _mixes(node: Node) -> bool:
    """True for what lets the positions see one another, and where tokens begin; also of an attention by hand."""
    if attention(node) is not None or node.op in RECURRENT | {"embedding"}:
        return True
    return node.op in ("matmul", "bmm", "einsum") and any(
        isinstance(i, Node) and i.op in ("softmax", "dropout") for i in node.inputs
    )


def _one_of_several(logits: Node) -> bool:
    """True where several tokens of a step lie beside one another, and the network answers at one of these.

    Then what it has seen of the others is not told by the number of the step (states and actions in turn)."""
    for node in ancestors(logits, through=lambda n: not _mixes(n)):
        of = node.inputs[0] if node.inputs else None
        if not node.grad or not isinstance(of, Node) or of.op not in RESHAPES:
            continue
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        picked = isinstance(index, tuple) and any(isinstance(i, int) for i in index)
        if picked or node.op in ("part", "unbind", "chunk", "split", "select"):
            return True
    return False


def _scored(loss: Node) -> tuple[Value, Value]:
    """The scores and the tokens that a loss is about; of a ``gather`` those of log-probabilities."""
    if loss.op in TRANSDUCED:
        return given(loss, "logits", 0), given(loss, "targets", 1)
    if loss.op not in ("gather", "take_along_dim"):
        return given(loss, "input", 0), given(loss, "target", 1)
    of = loss.inputs[0] if loss.inputs else None
    soft = any(n.op == "log_softmax" for n in _behind_moves(of))
    rest = [i for i in (*loss.inputs[1:], *loss.options.values()) if isinstance(i, Node)]
    return (of, rest[0]) if soft and rest else (None, None)


def _behind_moves(value: Value) -> Iterator[Node]:
    for _ in range(12):
        if not isinstance(value, Node):
            return
        yield value
        if value.op not in MOVES | {"getitem"} or not value.inputs:
            return
        value = value.inputs[0]


def _tail(ids: Value, target: Trail) -> int | None:
    """How many of the last tokens of ``ids`` are the targets, where they were put behind others."""
    if not isinstance(ids, Node) or ids.op not in ("cat", "concat", "concatenate") or not ids.inputs:
        return None
    held = ids.inputs[0]
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    last = trail(items[-1]) if len(items) > 1 else None
    length = items[-1].shape.dim(-1) if items and isinstance(items[-1], Node) else None
    return length if last is not None and last.root is target.root and last.start == target.start == 0 else None


def _head(value: Value) -> tuple[Node, int, int, Node | None] | None:
    """The output of the network behind the slices of the loss, how many positions they leave out, how often they
    count from the end, and the first."""
    at, moved, ends, cut = value, 0, 0, None
    for _ in range(30):
        if not isinstance(at, Node):
            return None
        if at.op == "either":
            known = [c for c in candidates(at) if c is not None]
            if len(known) != 1:
                return None
            at = known[0]
        elif at.op == "getitem" and len(at.inputs) > 1:
            index = at.inputs[1] if isinstance(at.inputs[1], tuple) else (at.inputs[1],)
            for part in index:
                begin = start_of(part)
                if begin is None or any(symbol is not END for symbol in begin[1]):
                    return None
                moved += begin[0]
                ends += len(begin[1])
            cut = cut or at
            at = at.inputs[0]
        elif at.op in MOVES or at.op in ("log_softmax", "log", "softmax", "clamp"):
            at = at.inputs[0]
        elif at.op in ("div", "mul") and len(at.inputs) > 1 and number_of(at.inputs[1]) is not None:
            at = at.inputs[0]  # a temperature
        else:
            return at, moved, ends, cut
    return None


def _cuts_front(node: Node) -> bool:
    """True for a slice of activations that leaves positions out, or picks one."""
    index = node.inputs[1] if isinstance(node.inputs[1], tuple) else (node.inputs[1],)
    if index[:1] == (Ellipsis,):
        index = index[1:-1]  # the last axis is that of the features
    for part in index[:2]:
        if isinstance(part, int) and not isinstance(part, bool):
            return True
        if isinstance(part, Node) or (isinstance(part, Obj) and part.args[:1] not in ((None,), (0,))):
            return True
    return False


def _sees_only_the_past(shift: Shift) -> bool | None:
    """True for one-directional recurrence or masked attention, False for attention without a mask, else None."""
    recurrent = open_attention = masked = False
    for node in ancestors(shift.logits):
        apart = node.op in RECURRENT and not _over(node, shift.fed)
        if apart or (attention(node) is not None and not _among(node, shift.fed)):
            continue  # of another sequence, or looking at one: an encoder
        if node.op in RECURRENT and node.owner is not None:
            if node.owner.get("bidirectional", 7, False) is not False:
                return None
            recurrent = True
        if node.op == "conv1d":
            causal = convolved(node)
            if causal is None:
                return None
            masked, open_attention = masked or causal, open_attention or not causal
        if node.op in ("conv2d", "embeddingbag"):
            return None
        kind = attention(node)
        masked = masked or kind is True
        open_attention = open_attention or kind is False
    if open_attention:
        return False
    return True if recurrent or masked else None


def not_shifted(run: Rehearsing) -> Iterator[Answer]:
    for shift in shifts(run):
        if shift.ahead == 0 and _sees_only_the_past(shift) is True:
            yield from _told(shift)


def _told(shift: Shift) -> Iterator[Answer]:
    cut = shift.sliced if shift.moved and shift.sliced is not None else shift.target.cut
    cut = None if cut is not None and _of_rows(cut) else cut
    cut = put_behind(shift.fed.inputs[0]) or cut
    place = cut.place if cut is not None and cut.place is not None else shift.loss.place
    if place is not None:
        text = "the target at each position is the very token that the network is given there"
        yield Answer(place, text, _proof(shift))


def _of_rows(cut: Node) -> bool:
    """True for a slice of whole rows of tokens: no token is left out by it."""
    base, index = (*cut.inputs, None, None)[:2]
    rows = isinstance(base, Node) and not base.shape.open and len(base.shape.dims) > 1
    return cut.op == "getitem" and rows and not isinstance(index, tuple)


def _lattice(shift: Shift) -> bool:
    """True for scores of each token at each frame (a transducer), which no auto-encoder has."""
    scores = shift.loss.inputs[0] if shift.loss.inputs else None
    ranked = isinstance(scores, Node) and not scores.shape.open and len(scores.shape.dims) == len("BTUV")
    return shift.loss.op in TRANSDUCED or (ranked and put_behind(shift.fed.inputs[0]) is not None)


def last_left_out(run: Rehearsing) -> Iterator[Answer]:
    """The same, where the last token (or the first) is cut off from both: done for what predicts the next one alone,
    whatever else the program does."""
    for shift in shifts(run):
        if shift.ahead == 0 and _lattice(shift) and _sees_only_the_past(shift) is True:
            yield from _told(shift)
            continue
        cut = shift.target.cut
        index = cut.inputs[1] if cut is not None and len(cut.inputs) > 1 else None
        slices = [i for i in (index if isinstance(index, tuple) else (index,)) if isinstance(i, Obj)]
        if cut is None or shift.ahead or not any(i.args[:2] in ((None, -1), (0, -1), (1, None)) for i in slices):
            continue
        if _sees_only_the_past(shift) is True and cut.place is not None:
            text = "the target at each position is the very token that the network is given there"
            yield Answer(cut.place, text, _proof(shift))


def double_shifted(run: Rehearsing) -> Iterator[Answer]:
    found = list(shifts(run))
    for shift in found:
        if any(s.ahead == 1 and s.fed is shift.fed for s in found):
            continue  # heads for several tokens ahead, that for the next one among them
        if shift.ahead == 2 and _sees_only_the_past(shift) is not None and shift.loss.place is not None:
            cut = _before_the_model(shift) or shift.sliced or shift.target.cut
            place = cut.place if cut is not None and cut.place is not None else shift.loss.place
            yield Answer(place, "the target lies two tokens ahead: it is shifted a second time", _proof(shift))


def _before_the_model(shift: Shift) -> Node | None:
    """Where labels are shifted for a network that shifts them itself in its forward."""
    own = shift.loss.place[1] if shift.loss.place is not None else None
    if own is None or own.name != "forward":
        return None
    return next((c for c in shift.target.cuts if c.place is not None and c.place[1] is not own), None)


def sees_the_future(run: Rehearsing) -> Iterator[Answer]:
    """Attention without a mask in a network that is trained on the next token."""
    for shift in shifts(run):
        if shift.ahead != 1:
            continue
        for node in ancestors(shift.logits):
            if node.op == "conv1d" and convolved(node) is False and node.place is not None and _over(node, shift.fed):
                pad = node.inputs[0].place if isinstance(node.inputs[0], Node) else None
                text = "padding on the right: this sees tokens to come, and the network is trained on the next one"
                yield Answer(pad or node.place, text, _proof(shift))
                return
            if attention(node) is False and node.place is not None and _among(node, shift.fed):
                text = "attention over tokens to come: the network is trained on the next token without a mask"
                mask = blind_mask(node) or handed_mask(node)
                place = mask.place if mask is not None and mask.place is not None else node.place
                yield Answer(place, text, _proof(shift))


def cut_ahead(run: Rehearsing) -> Iterator[Answer]:
    """A convolution pads both ends, and the wrong one is cut off, in a network that is trained on the next token."""
    for shift in walked_shifts(run):
        if shift.ahead != 1:
            continue
        behind = list(ancestors(shift.logits))
        for node in behind:
            cut = cropped(node, behind) if node.op == "conv1d" else None
            if cut is not None and cut[1] > 0 and cut[0].place is not None and _over(node, shift.fed):
                text = f"this cut leaves what sees {cut[1]} tokens ahead, and the network is trained on the next one"
                yield Answer(cut[0].place, text, _proof(shift))
                return


def _among(node: Node, fed: Node) -> bool:
    """True for an attention whose questions and keys both come from ``fed``: that to another text may see all of it."""
    at: Node | None = node
    for _ in range(20 if node.op == "softmax" else 0):
        if at is None or at.op in ("matmul", "einsum", "bmm", "baddbmm"):
            break
        at = next((i for i in at.inputs if isinstance(i, Node) and i.grad), None)
    count = 1 if node.op.startswith(("transformerdecoder", "transformerencoder")) else 2  # what follows is a memory
    sides = [i for i in (at or node).inputs if isinstance(i, Node) and i.op != "param"][:count]
    return all(_over(side, fed) for side in sides)


def _over(node: Node, fed: Node) -> bool:
    return any(n is fed for n in ancestors(node))


def _proof(shift: Shift) -> tuple[Place, ...]:
    return tuple(n.place for n in (shift.fed, shift.loss) if n.place is not None)
