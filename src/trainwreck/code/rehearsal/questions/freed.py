"""What a backward needs and no longer finds: a graph that an earlier one freed, weights that a step has changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, reached, steps

SAVES_WEIGHT = frozenset(
    "linear matmul mm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d bilinear layer_norm prelu".split()
)
"""Operations whose backward to their input reads the weight (torch's derivatives.yaml)."""
SAVES = SAVES_WEIGHT | frozenset(
    """embedding relu gelu silu tanh sigmoid exp log softmax log_softmax normalize sqrt lstm gru rnn batch_norm
    scaled_dot_product_attention cross_entropy mse_loss mul div pow square abs norm logsumexp clamp where masked_fill
    gather softplus logsigmoid leaky_relu elu var std cos sin einsum smooth_l1_loss l1_loss huber_loss nll_loss kl_div
    binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity""".split()
)
"""Operations that keep something for their backward, which is freed with the graph (each tried: a second backward
raises; not so for sums, means, views and joins)."""


def twice(run: Rehearsing) -> Iterator[Answer]:
    """A backward that goes through what another one in the same turn, or through one loss of several, has freed."""
    told: set[int] = set()
    for event in backwards(run):
        for before in backwards(run):
            if before.serial >= event.serial:
                break
            if (
                _keeps(before)
                or before.get("inputs") is not None
                or not set(map(id, before.tests)) <= set(map(id, event.tests))
            ):
                continue
            if (
                event.place is None
                or id(event.place[0]) in told
                or _either(run, before, event)
                or not ((_same_turns(before, event) and not _same_way(before, event)) or _several(before, event))
            ):
                continue
            freed = {id(n) for n in _graph(before)}
            if any(id(n) in freed and n.op in SAVES and not _lazy(run, n) for n in _graph(event)):
                told.add(id(event.place[0]))
                yield Answer(event.place, "the graph of this loss was freed by the backward before it",
                             _places(before.place))  # fmt: skip


def _same_way(before: Event, event: Event) -> bool:
    """True for one call that is reached by the same calls again: a turn of a comprehension."""
    ways = [tuple(id(at[0]) for at in (*e.stack, *_places(e.place))) for e in (before, event)]
    return ways[0] == ways[1]


def _several(before: Event, event: Event) -> bool:
    """True for two losses, computed before the loop over them in which their backward stands."""
    value = event.subject
    if before.place != event.place or before.subject is value or not isinstance(value, Node):
        return False
    mine = {id(t.node) for t in value.turns}
    return any(id(t.node) not in mine for t in event.turns)


def _either(run: Rehearsing, one: Event, other: Event) -> bool:
    """True if the two stand in different branches of one statement."""
    mine = _sides(run, one)
    return any(mine.get(key, side) != side for key, side in _sides(run, other).items())


def _sides(run: Rehearsing, event: Event) -> dict[int, str]:
    """By ``id`` of each branching statement around an event, the part of it that the event stands in."""
    found: dict[int, str] = {}
    for node, scope in (*event.stack, *_places(event.place)):
        inner: ast.AST = node
        for above in run.project.ancestors(node, scope):
            if isinstance(above, ast.If | ast.IfExp | ast.Try | ast.Match):
                for name, value in ast.iter_fields(above):
                    listed = value if isinstance(value, list) else [value]
                    if any(inner is v for v in listed):
                        found[id(above)] = f"{name} {listed.index(inner)}" if name in ("handlers", "cases") else name
            inner = above
    return found


def built_once(run: Rehearsing) -> Iterator[Answer]:
    """A part of the graph that was made before a loop, and that the backward of each turn goes through."""
    told: set[int] = set()
    for event in backwards(run):
        turn = next((t for t in event.turns if t.index > 0), None)
        if turn is None or _keeps(event):
            continue
        earlier = [
            e
            for e in backwards(run)
            if e.place == event.place and e.serial < event.serial and not _keeps(e) and len(e.tests) <= len(event.tests)
            and any(t.node is turn.node and t.index < turn.index for t in e.turns) and not _several(e, event)
        ]  # fmt: skip
        if not earlier:
            continue
        freed = {id(n) for e in earlier for n in _graph(e)}
        for node in _graph(event):
            outside = not any(t.node is turn.node for t in node.turns)
            early = outside and node.op in SAVES and node.serial < earlier[0].serial
            if id(node) in freed and early and not _lazy(run, node):
                place = _made(node, event)
                if place is not None and id(place[0]) not in told:
                    told.add(id(place[0]))
                    text = "this graph is made once before the loop, and the first backward in the loop frees it"
                    yield Answer(place, text, _places(event.place))
                break


def stepped_between(run: Rehearsing) -> Iterator[Answer]:
    """A step that changes weights in place which the backward of an earlier forward still reads."""
    told: set[int] = set()
    gone: set[int] = set()
    for event in sorted(backwards(run), key=lambda e: e.serial):
        passed = list(_graph(event))
        earlier = set(gone)
        if not _keeps(event):
            gone |= {id(n) for n in passed}
        before = [s for s in steps(run) if s.serial < event.serial and set(s.tests) <= set(event.tests)]
        if not before or event.get("inputs") is not None:
            continue
        for node in passed:
            mine = node.op in SAVES_WEIGHT and id(node) not in earlier and _same_turns(node, event)
            step = _changed(run, node, before) if mine else None
            if step is None or _lazy(run, node):
                continue
            if step.place is not None and id(step.place[0]) not in told:
                told.add(id(step.place[0]))
                text = "this step changes weights that the backward of a loss which was computed before still needs"
                yield Answer(step.place, text, _places(event.place, node.place))
                break


def _changed(run: Rehearsing, node: Node, before: list[Event]) -> Event | None:
    """The step that changes a weight after ``node`` was computed with it, if the gradient of its input needs it."""
    data = node.inputs[0] if node.inputs else None
    if not isinstance(data, Node) or not data.grad or data.op == "param":
        return None
    weights = {id(p) for p in node.inputs[1:] if isinstance(p, Node) and p.op == "param"}
    for step in (s for s in before if s.serial > node.serial):
        mine = weights & {id(p) for p in held(step)}
        for backward in backwards(run):
            fresh = backward.serial > node.serial or _same_turns(backward, step)
            if backward.serial < step.serial and fresh and mine & {id(p) for p in reached(backward)}:
                return step
    return None


def _graph(event: Event) -> Iterator[Node]:
    """What the backward surely goes through."""
    return (n for n in ancestors(event.subject, through=_surely) if n.grad)


def _surely(node: Node) -> bool:
    """True where a backward goes through: not for functions of packages that may cut the graph themselves."""
    known = not node.full or node.full.startswith(("torch", "builtins", "math", "numpy", "einops"))
    return node.grad and known and node.op not in ("detach", "detach_", "param", "either")


def _lazy(run: Rehearsing, node: Node) -> bool:
    """True for what a generator or a ``map`` computes: it may come later than the rehearsal had it."""
    for place in (*node.stack, *_places(node.place)):
        held, scope = place
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in scope.nodes):
            return True
        around = (held, *run.project.ancestors(held, scope))
        if any(isinstance(n, ast.GeneratorExp | ast.Lambda) for n in around):
            return True
        if any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "map" for n in around):
            return True
    return False


def _keeps(event: Event) -> bool:
    """True where the graph is kept, or may be."""
    return event.get("retain_graph") not in (None, False) or event.get("create_graph") not in (None, False)


def _same_turns(one: Event | Node, other: Event | Node) -> bool:
    """True unless a loop around both is in another turn."""
    mine = {id(t.node): t.index for t in one.turns}
    return all(mine.get(id(t.node), t.index) == t.index for t in other.turns)


def _made(node: Node, event: Event) -> Place | None:
    """Where a value is asked for on the way that it doesn't share with the backward, inside what only sets up."""
    way = [*node.stack, *_places(node.place)]
    common = 0
    while common < len(way) - 1 and common < len(event.stack) and way[common][0] is event.stack[common][0]:
        common += 1
    while common < len(way) - 1 and getattr(way[common + 1][1].node, "name", "") == "__init__":
        common += 1
    return way[common] if way else None


def _places(*places: Place | None) -> tuple[Place, ...]:
    return tuple(p for p in places if p is not None)
