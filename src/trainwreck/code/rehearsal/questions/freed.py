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
    scaled_dot_product_attention cross_entropy mse_loss""".split()
)
"""Operations that keep a tensor for their backward, which is freed with the graph."""


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
            and any(t.node is turn.node and t.index < turn.index for t in e.turns)
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
    for event in backwards(run):
        before = [s for s in steps(run) if s.serial < event.serial and set(s.tests) <= set(event.tests)]
        if not before or event.get("inputs") is not None:
            continue
        gone = {id(n) for b in backwards(run) if b.serial < event.serial and not _keeps(b) for n in _graph(b)}
        for node in _graph(event):
            mine = _same_turns(node, event) and id(node) not in gone and not _lazy(run, node)
            step = _changed(run, node, before) if mine else None
            if step is not None and step.place is not None and id(step.place[0]) not in told:
                told.add(id(step.place[0]))
                text = "this step changes weights that the backward of a loss which was computed before still needs"
                yield Answer(step.place, text, _places(event.place, node.place))
                break


def _changed(run: Rehearsing, node: Node, before: list[Event]) -> Event | None:
    """The step that changes a weight after ``node`` was computed with it, if the gradient of its input needs it."""
    data = node.inputs[0] if node.inputs else None
    if node.op not in SAVES_WEIGHT or not isinstance(data, Node) or not data.grad or data.op == "param":
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
    way = ancestors(event.subject, through=lambda n: n.grad and n.op not in ("detach", "detach_", "param", "either"))
    return (n for n in way if n.grad)


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
