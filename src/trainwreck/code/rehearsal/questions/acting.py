"""What an agent does and is paid: the worst action taken, the reward turned round, an actor that is not asked."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.asked_states import CUTS
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.gradients import held, lives, steps, written_by_hand
from trainwreck.code.rehearsal.questions.roles import RAW, core, foreign, trained, unknown, users
from trainwreck.code.rehearsal.questions.signs import ERRORS
from trainwreck.code.rehearsal.questions.successors import CHOSEN, LARGEST, LEAST, SUMS, extremes, proof_of
from trainwreck.code.rehearsal.questions.targets import fits
from trainwreck.code.rehearsal.questions.terms import parameters_behind


def acts_worst(run: Rehearsing) -> Iterator[Answer]:
    """Values are learned of which the best counts, and the action with the least is taken."""
    for one in fits(run):
        learned = parameters_behind(one.output, through_grad=True)
        if not any(True for _ in extremes(one.found.value, LARGEST | CHOSEN)) or _opposed(one.found.value):
            continue
        for node in run.nodes:
            first = node.inputs[0] if node.op == "argmin" and node.inputs else None
            if not isinstance(first, Node) or first.op not in RAW | SUMS or node.place is None:
                continue
            if parameters_behind(first).keys() == learned.keys():
                text = "the action with the least value is taken here, where the best one is learned"
                yield Answer(node.place, text, proof_of(one))
                return


def acts_least(run: Rehearsing) -> Iterator[Answer]:
    """The value of the action that was taken is fitted to what the program calls the reward, and the action with the
    least value is taken: no state follows (a bandit)."""
    for loss in trained(run):
        if loss.op not in ERRORS or len(loss.inputs) < 2 or not isinstance(loss.inputs[1], Node):
            continue
        picked = next((n for n in core(loss.inputs[0]) if n.op in RAW), None)
        chosen = [n for n in ancestors(loss.inputs[0], through=lambda n: n.op not in RAW) if n.op in PICKED]
        if picked is None or not chosen or not _is_reward(run, loss.inputs[1]):
            continue
        learned = parameters_behind(picked).keys()
        for node in run.nodes:
            first = node.inputs[0] if node.op == "argmin" and node.inputs else None
            if not isinstance(first, Node) or first.op not in RAW or node.place is None:
                continue
            if parameters_behind(first).keys() == learned:
                text = "the action with the least value is taken here, and the values are those of rewards"
                yield Answer(node.place, text, (loss.place,) if loss.place is not None else ())
                return


def complement_learned(run: Rehearsing) -> Iterator[Answer]:
    """Values of actions are fitted to one less the reward, or to its negative, and the action with the largest value
    is taken."""
    for loss in trained(run):
        if loss.op not in ERRORS or len(loss.inputs) < 2 or not isinstance(loss.inputs[1], Node):
            continue
        chosen = [n for n in ancestors(loss.inputs[0], through=lambda n: n.op not in RAW) if n.op in PICKED]
        acts = any(n.op == "argmax" and n.inputs and getattr(n.inputs[0], "op", "") in RAW for n in run.nodes)
        if not chosen or not acts or any(n.op == "argmin" for n in run.nodes):
            continue
        # not behind a product: ``(1 - reached) * value`` stops at the goal
        for node in ancestors(loss.inputs[1], through=lambda n: n.op not in RAW and n.op != "mul"):
            at = node.place[0] if node.place is not None else None
            if isinstance(at, ast.BinOp) and node.op == "sub" and node.inputs[:1] in ((1,), (1.0,)):
                turned: ast.expr | None = at.right
            else:
                turned = at.operand if isinstance(at, ast.UnaryOp) and node.op == "neg" else None
            if turned is not None and REWARD.search(ast.unparse(turned)) and node.place is not None:
                text = "the reward is turned round here: what earned most counts as the least"
                yield Answer(node.place, text, (loss.place,) if loss.place is not None else ())
                return


PICKED = frozenset(["gather", "getitem", "take_along_dim"])


def _is_reward(run: Rehearsing, value: Node) -> bool:
    """True for a target that the program calls the reward where it is put together."""
    if value.place is None:
        return False
    statement = run.project.statement(*value.place)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return any(REWARD.search(n) for n in names)


def _opposed(value: Node) -> bool:
    """True for the best of the worst: somebody else answers with the action that is least for this one."""
    behind = ancestors(value, through=lambda n: n.op not in RAW)
    return any(n.op in LEAST and isinstance(along(n), int) for n in behind)


REWARD = pattern(r"^(\w+\.)*(r|rew|rewards?|gain|payoff|rw|step_reward|env_reward)(_t)?$", re.IGNORECASE)


def reward_turned(run: Rehearsing) -> Iterator[Answer]:
    """What is put aside as the reward is the negative of what the program calls the reward."""
    for one in fits(run):
        made = [n for n in ancestors(one.found.reward, through=lambda n: n.op not in RAW) if n.op == "neg"]
        for node in made:
            place = node.place
            turned = place[0] if place is not None else None
            plain = isinstance(turned, ast.UnaryOp) and REWARD.search(ast.unparse(turned.operand))
            whole = ancestors(one.found.reward, through=_beside(node))
            if not plain or place is None or any(n is node.inputs[0] for n in whole):
                continue
            yield Answer(place, "the reward is turned round here: what earned most counts as the least", proof_of(one))
            return


def _beside(node: Node) -> Callable[[Node], bool]:
    return lambda n: n.op not in RAW and n is not node


def never_asked(run: Rehearsing) -> Iterator[Answer]:
    """Behind the loss before an optimizer's step stands no parameter that it holds: what it trains was not asked."""
    life = lives(run)
    for optimizer in dict.fromkeys(e.subject for e in life.empty) if life.sure else ():
        mine = [e for e in steps(run) if e.subject is optimizer]
        if (
            not all(e in life.empty for e in mine)
            or not mine[-1].turns
            or any(written_by_hand(run, p) for p in held(mine[-1]))
        ):
            continue
        step = mine[-1]
        before = [e for e in run.tape if e.name == "backward" and e.serial < step.serial and e.turns == step.turns]
        between = [e for e in steps(run) if before and before[-1].serial < e.serial < step.serial]
        event = before[-1] if before and not between else None
        if event is None or event.place is None:
            continue
        way = list(ancestors(event.subject, through=lambda n: n.op not in CUTS))
        behind = {id(n) for n in way if n.op == "param"}
        live = parameters_behind(event.subject, through_grad=True)
        inside = {id(p) for p in held(step)}
        asked = any(u.op in RAW for p in held(step) for u in users(run).get(id(p), ()))
        if not live or not asked or behind & inside or any(unknown(n) or foreign(n) for n in way):
            continue
        node = next((n for n in ancestors(event.subject, through=lambda n: n.op != "param") if n.op in RAW), None)
        scope = event.place[1]
        seen = (*node.stack, node.place) if node is not None else ()
        place = next((p for p in seen if p is not None and p[1] is scope), event.place)
        yield Answer(place, "no parameter that the next step moves stands behind this loss", (event.place,))
        return


__all__ = ["acts_least", "acts_worst", "complement_learned", "never_asked", "reward_turned"]
