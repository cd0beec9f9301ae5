"""What a target takes of the values that follow: of several critics the least, of several actions the best; and on the
other side of the error the action that was taken."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.asked_states import CUTS, put_aside, states
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, STRUCTURE
from trainwreck.code.rehearsal.questions.targets import LEAST_DISCOUNT, Fitted, fits, is_value
from trainwreck.code.rehearsal.questions.terms import losses_of, number_of, parameters_behind, squared_error

LARGEST = frozenset(["max", "maximum", "amax"])
LEAST = frozenset(["min", "minimum", "amin"])
CHOSEN = frozenset(["gather", "take_along_dim", "gathered"])
SUMS = STRUCTURE | frozenset(["add", "sub", "neg", "part", "either", "mul"])


def proof_of(one: Fitted) -> tuple[Place, ...]:
    return tuple(p for p in (one.found.node.place, one.event.place) if p is not None)


def extremes(value: Value, ops: frozenset[str]) -> Iterator[Node]:
    """The operations of this kind that a value is, with nothing but sums and selections around."""
    for node in ancestors(value, through=lambda n: n.op in SUMS):
        if node.op in ops and node.inputs:
            yield node


def _critics(node: Node) -> list[dict[int, Node]]:
    """Of an extreme over the outputs of several networks: the parameters behind each; nothing for any other."""
    first = node.inputs[0]
    if len(node.inputs) > 1 and isinstance(first, Node) and isinstance(node.inputs[1], Node):
        sides: list[Value] = list(node.inputs[:2])
    elif isinstance(first, Items | tuple):
        sides = list(first.items if isinstance(first, Items) else first)
    elif isinstance(first, Node) and first.op in JOINS and first.inputs and along(node) in (0, None):
        inner = first.inputs[0]
        sides = list(inner.items) if isinstance(inner, Items) else list(inner) if isinstance(inner, tuple) else []
    else:
        return []
    return [parameters_behind(s) for s in sides if isinstance(s, Node)] if len(sides) > 1 else []


def _others(critics: list[dict[int, Node]]) -> bool:
    """True for different networks, also where an actor that both are asked about is behind each."""
    one, other = critics[0].keys(), critics[1].keys()
    return bool(one - other and other - one)


def optimistic(run: Rehearsing) -> Iterator[Answer]:
    """Of two critics the larger value goes into the target: each overestimates, and the larger one most."""
    for one in fits(run):
        if any(True for _ in extremes(one.found.value, LEAST)):
            continue  # mixed from both
        for node in extremes(one.found.value, LARGEST):
            critics = _critics(node)
            single = all(n.shape.dims[-1:] in ((1,), ()) or n.shape.open for n in parts(node.inputs[:2]))
            if len(critics) > 1 and single and _others(critics) and node.place is not None:
                text = "of several critics the larger value is taken: what one overestimates is learned by all"
                yield Answer(node.place, text, proof_of(one))
                return


def least_of_the_samples(run: Rehearsing) -> Iterator[Answer]:
    """Critics are stacked, and the least is taken along another axis than theirs: over the samples."""
    for one in fits(run):
        for node in ancestors(one.found.value, through=lambda n: n.op not in RAW):
            stacked, dim = node.inputs[0] if node.inputs else None, along(node)
            if node.op not in LEAST or not isinstance(stacked, Node) or stacked.op != "stack" or node.place is None:
                continue
            inner = stacked.inputs[0] if stacked.inputs else None
            sides = list(inner.items) if isinstance(inner, Items) else list(inner) if isinstance(inner, tuple) else []
            critics = [parameters_behind(s) for s in sides if isinstance(s, Node)]
            theirs = stacked.options.get("dim", stacked.inputs[1] if len(stacked.inputs) > 1 else 0)
            closed = not stacked.shape.open and len(stacked.shape.dims) == 2
            other = dim == 1 or (closed and dim == -1)  # of an open shape the last axis may be one of size 1
            if len(critics) > 1 and theirs in (0, -2) and other and _others(critics):
                text = "the least is taken over the samples here, and not over the critics"
                yield Answer(node.place, text, proof_of(one))
                return


def one_critic_twice(run: Rehearsing) -> Iterator[Answer]:
    """The lesser of two values that are the same one; or an error that is added twice where another critic has none."""
    for one in fits(run):
        for node in extremes(one.found.value, LEAST):
            sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
            if len(node.inputs) < 2 or len(sides) < 2 or node.place is None:
                continue
            mine, other = (parameters_behind(s) for s in sides)
            if mine and mine.keys() == other.keys() and _same(sides[0], sides[1]):
                yield Answer(
                    node.place, "both sides are one critic's value: the second critic is not asked", proof_of(one)
                )
                return
    known = {id(one.error) for one in fits(run)}
    for event, found in losses_of(run):
        errors = [(t, squared_error(t.node)) for t in found if id(t.node) in known]
        for at, (term, pair) in enumerate(errors):
            for other_term, other_pair in errors[:at]:
                if pair is None or other_pair is None or term.node is other_term.node or term.sign != other_term.sign:
                    continue
                same = pair[0] is other_pair[0] and pair[1] is other_pair[1]
                if same and term.sure and other_term.sure and term.node.place is not None:
                    text = "this error stands in the loss already: the other critic learns nothing"
                    yield Answer(term.node.place, text, (event.place,) if event.place is not None else ())
                    return


def _same(one: Node, other: Node, depth: int = 0) -> bool:
    """True for two values that were computed alike from the same ones."""
    if one is other:
        return True
    if (
        depth > 12
        or one.op != other.op
        or len(one.inputs) != len(other.inputs)
        or one.op in ("rand", "randn", "dropout")
    ):
        return False
    pairs = list(zip(one.inputs, other.inputs, strict=True))
    nodes = [(a, b) for a, b in pairs if isinstance(a, Node) and isinstance(b, Node)]
    rest = all(a is b or a == b for a, b in pairs if not (isinstance(a, Node) and isinstance(b, Node)))
    return bool(nodes) and rest and all(_same(a, b, depth + 1) for a, b in nodes)


# ---------------------------------------------------------------------- actions
def _picks(value: Value) -> Node | None:
    """Where, of the values of all actions, that of the one that was taken is picked."""
    for node in ancestors(value, through=lambda n: n.op in STRUCTURE or n.op in ("sum", "mul", "either")):
        if node.op in CHOSEN:
            return node
        if node.op == "getitem" and len(node.inputs) > 1 and isinstance(node.inputs[1], tuple) and any(
            isinstance(i, Node) for i in node.inputs[1]
        ):  # fmt: skip
            return node
    return None


def worst_action(run: Rehearsing) -> Iterator[Answer]:
    """Of the values of all actions that may follow, the target takes the least.

    Not meant: values of what is to be small (costs), of which the agent takes the least where it acts."""
    for one in fits(run):
        if _picks(one.output) is None or _least_is_best(run, one):
            continue
        for node in extremes(one.found.value, LEAST | CHOSEN):
            if node.op in LEAST:
                if _critics(node) or along(node) not in (1, -1) or node.place is None:
                    continue
                yield Answer(
                    node.place, "the target takes the value of the worst action that may follow", proof_of(one)
                )
                return
            for chosen in ancestors(node.inputs[1:2] or node.options.get("index"), through=lambda n: n.op in STRUCTURE):
                if chosen.op == "argmin" and chosen.place is not None:
                    text = "the target takes the value of the action that is worst by this"
                    yield Answer(chosen.place, text, proof_of(one))
                    return


def _least_is_best(run: Rehearsing, one: Fitted) -> bool:
    """True where the action with the least of these values is taken, outside of the target."""
    learned = parameters_behind(one.output, through_grad=True)
    inside = {id(n) for n in ancestors(one.found.value, through=lambda n: n.op not in RAW)}
    asked = (n.inputs[0] for n in run.nodes if n.op == "argmin" and n.inputs and id(n) not in inside)
    return any(isinstance(a, Node) and parameters_behind(a).keys() >= learned.keys() for a in asked)


def _chosen_elsewhere(run: Rehearsing, one: Fitted) -> bool:
    """True where the network that learns here (or its copy) is anywhere given a state beside what a network made."""
    learned = parameters_behind(one.output, through_grad=True).keys()
    for node in run.nodes:
        given = node.inputs[0] if node.op in RAW and node.inputs else None
        if not isinstance(given, Node) or given.op not in ("cat", "concat", "concatenate"):
            continue
        weights = {id(q) for p in node.inputs if isinstance(p, Node) and p.op == "param" for q in (p, *parts(p.inputs))}
        items = [p for i in given.inputs[:1] for p in parts(i)]
        if weights & learned and any(put_aside(i) for i in items) and any(parameters_behind(i) for i in items):
            return True
    return False


def _joined(output: Node) -> set[int]:
    """How many values are put together for the networks behind an output."""
    behind = ancestors(output, through=lambda n: n.op != "param" and not put_aside(n))
    joins = (n for n in behind if n.op in ("cat", "concat", "concatenate"))
    return {len([p for i in n.inputs[:1] for p in parts(i)]) for n in joins}


def _of_several(node: Node) -> bool:
    """True for what is taken of the values of several actions."""
    first = node.inputs[0] if node.inputs else None
    return isinstance(first, Node) and is_value(first) and first.shape.dims[-1:] not in ((1,), ())


def any_of_them(run: Rehearsing) -> Iterator[Answer]:
    """The target takes the average over the actions that may follow, where the best of them is what the agent does."""
    for one in fits(run):
        learned = parameters_behind(one.output, through_grad=True)
        if _picks(one.output) is None:
            continue
        for node in extremes(one.found.value, frozenset(["mean"])):
            if not _of_several(node) or along(node) not in (1, -1) or node.place is None or node.options.get("keepdim"):
                continue
            asked = (n.inputs[0] for n in run.nodes if n.op == "argmax" and n.inputs)
            if any(isinstance(a, Node) and parameters_behind(a).keys() == learned.keys() for a in asked):
                text = "the target takes the average over all actions, and the agent takes the best one"
                yield Answer(node.place, text, proof_of(one))
                return


def over_the_batch(run: Rehearsing) -> Iterator[Answer]:
    """The best action is looked for among the values of all samples, not of each."""
    for one in fits(run):
        picked = _picks(one.output)
        if picked is None or not _of_rows(picked):
            continue
        for node in extremes(one.found.value, LARGEST):
            whole = node.full[:9] != "builtins." and len(node.inputs) == 1 and along(node) is None
            if _critics(node) or node.place is None or not any(True for _ in parts(node.inputs[:1])):
                continue
            if (whole or along(node) == 0) and isinstance(node.inputs[0], Node) and node.inputs[0].op in RAW | SUMS:
                text = "the largest value of the whole batch is taken here, not that of each sample's best action"
                yield Answer(node.place, text, proof_of(one))
                return


def across_states(run: Rehearsing) -> Iterator[Answer]:
    """The advantages of the actions are centred over the samples of the batch, not over the actions of each."""
    for one in fits(run):
        picked = _picks(one.output)
        for node in ancestors(picked.inputs[0], through=lambda n: n.op in SUMS) if picked is not None else ():
            averaged = node.op == "mean" and _of_several(node) and along(node) == 0
            if averaged and picked is not None and _of_rows(picked) and node.place is not None:
                text = "the average runs over the samples, where it is that of one state's actions which is taken off"
                yield Answer(node.place, text, proof_of(one))
                return


def never_discounted(run: Rehearsing) -> Iterator[Answer]:
    """A discount is set and nowhere used, and the value of what follows counts in full."""
    names = [n for n in discounts(run)]
    for event, found in losses_of(run) if names else ():
        for term in found:
            pair = squared_error(term.node)
            for target in pair or ():
                for node in ancestors(target, through=lambda n: n.op in STRUCTURE or n.op == "either"):
                    if node.op == "add" and not node.grad and _undiscounted(node) and node.place is not None:
                        text = f"{names[0][0]} is set and never used: the value of what follows counts in full here"
                        yield Answer(node.place, text, (names[0][1], *((event.place,) if event.place else ())))
                        return


def discounts(run: Rehearsing) -> Iterator[tuple[str, Place]]:
    """Names of discounts that are set in the program and read nowhere in it."""
    for module, scope in {id(w.scopes[0].module): (w.scopes[0].module, w.scopes[0]) for w in run.project.walked.values()
                          if w.scopes}.values():  # fmt: skip
        for node in ast.walk(module.tree):
            for target, value in _assigned(node):
                number = value.value if isinstance(value, ast.Constant) else None
                named = isinstance(target, ast.Name) and DISCOUNT.search(target.id)
                if not named or not isinstance(number, float) or not LEAST_DISCOUNT < number < 1:
                    continue
                if isinstance(target, ast.Name) and not _read(module.tree, target.id):
                    yield target.id, (node, scope)


def _assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    if not isinstance(node, ast.Assign):
        return []
    found: list[tuple[ast.expr, ast.expr]] = []
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            found += zip(target.elts, node.value.elts, strict=False)
        else:
            found.append((target, node.value))
    return found


DISCOUNT = pattern(r"^(gamma|discount(_factor)?|disc)$", re.IGNORECASE)


def _read(tree: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(tree)) or any(
        isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(tree)
    )


def _undiscounted(node: Node) -> bool:
    for reward, rest in (node.inputs[:2], node.inputs[1::-1]):
        if (
            isinstance(reward, Node)
            and isinstance(rest, Node)
            and not any(n.op == "param" for n in ancestors(reward, through=lambda n: n.op not in CUTS))
        ):
            products = [m for m in ancestors(rest, through=lambda n: n.op == "mul") if m.op == "mul"]
            numbers = [n for m in products for n in m.inputs if number_of(n)]
            if is_value(rest) and not numbers:
                return True
    return False


def _of_rows(picked: Node) -> bool:
    """True where one action is picked in each of many rows."""
    if picked.op == "getitem":
        index = picked.inputs[1]
        return isinstance(index, tuple) and len(index) == 2 and isinstance(index[0], Node)
    return picked.get("dim", 1) in (1, -1) and (picked.shape.open or picked.shape.dims[:1] != (1,))


def any_action(run: Rehearsing) -> Iterator[Answer]:
    """What is learned is the value of the best action, whichever was taken."""
    for one in fits(run):
        for node in ancestors(one.output, through=lambda n: n.op in STRUCTURE or n.op == "part"):
            if node.op not in ("max", "amax") or not node.inputs or along(node) not in (1, -1) or node.place is None:
                continue
            first = node.inputs[0]
            several = isinstance(first, Node) and is_value(first) and first.shape.dims[-1:] not in ((1,), ())
            also = any(True for _ in extremes(one.found.value, LARGEST | CHOSEN))
            if several and also and not _critics(node):
                text = "the value of the best action is learned here, not that of the action which was taken"
                yield Answer(node.place, text, proof_of(one))
                return


def another_action(run: Rehearsing) -> Iterator[Answer]:
    """A critic is asked about the next state with the action that was taken before, or about the state before with the
    action that comes next.

    Not meant: what stands beside the state is a goal. It is where the value of the action is picked, and where the
    critic is nowhere asked about what a network chose."""
    for one in fits(run):
        if _picks(one.output) is not None or not _chosen_elsewhere(run, one):
            continue
        mine = states(one.output)
        for node in ancestors(one.found.value, through=lambda n: n.op != "param"):
            if node.op not in ("cat", "concat", "concatenate") or len(states(one.output)) < 2:
                continue
            items = [p for i in node.inputs[:1] for p in parts(i)]
            if len(items) not in _joined(one.output):
                continue  # another network, that is not asked about an action
            plain = [i for i in items if put_aside(i)]
            chosen = [i for i in items if not put_aside(i) and parameters_behind(i)]
            before = [i for i in plain if id(i) in mine]
            reused = len(plain) > 1 and len(plain) == len(items) and 0 < len(before) < len(plain)
            early = len(plain) == len(before) == 1 and any(states(c) - mine for c in chosen)
            if (not reused and not early) or node.place is None:
                continue
            scope = one.found.node.place[1] if one.found.node.place is not None else None
            place = next((p for p in (*node.stack, node.place) if p[1] is scope), node.place)
            text = (
                "the action that was taken before is valued together with the next state" if reused else
                "the state before is valued here, together with the action that comes next"
            )  # fmt: skip
            yield Answer(place, text, proof_of(one))
            return


__all__ = [
    "across_states",
    "another_action",
    "any_action",
    "any_of_them",
    "never_discounted",
    "one_critic_twice",
    "optimistic",
    "over_the_batch",
    "worst_action",
]
