"""Dropout that is a function: does it stop where the network is in evaluation mode?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.modes import sampled
from trainwreck.code.rehearsal.questions.roles import users

MEANT = pattern(r"mc_?drop|monte|stochastic|uncertain|bayes|ensemble|sampled?_|noise|augment|corrupt", re.IGNORECASE)
"""Names of functions that are random on purpose."""
FUNCTIONS = frozenset(["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"])
DRAWS = frozenset(["bernoulli", "bernoulli_", "rand", "rand_like"])


def attention_stays_random(run: Rehearsing) -> Iterator[Answer]:
    """``scaled_dot_product_attention`` with a ``dropout_p`` above zero, while the network is in evaluation mode."""
    for node, forward in _judged(run, frozenset(["scaled_dot_product_attention"])):
        rest = node.inputs[: len(node.inputs) - len(node.options)]
        rate: Value = node.options.get("dropout_p", rest[4] if len(rest) > 4 else None)
        if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0 and node.place is not None:
            text = f"the attention drops {rate:g} of its weights in evaluation as well: dropout_p does not ask the mode"
            yield Answer(_where(run, node), text, (forward,))


def stays_random(run: Rehearsing) -> Iterator[Answer]:
    """``F.dropout`` without ``training=``, while the network is in evaluation mode."""
    for node, forward in _judged(run, FUNCTIONS):
        if not node.full.startswith("torch.nn.functional.") or node.place is None or "training" in node.options:
            continue
        rest = node.inputs[: len(node.inputs) - len(node.options)]
        rate: Value = node.options.get("p", rest[1] if len(rest) > 1 else 0.5)
        if len(rest) < 3 and isinstance(rate, int | float) and rate > 0:
            text = "this dropout ignores eval(): training= is not passed, and its default is True"
            yield Answer(node.place, text, (forward,))


def _judged(run: Rehearsing, ops: frozenset[str]) -> Iterator[tuple[Node, Place]]:
    """Calls inside of a network that is in evaluation mode, with the call of the network; each place once."""
    told: set[int] = set()
    nodes = [n for n in run.nodes if n.op in ops and n.place is not None and n.stack]
    if not nodes:
        return
    forwards = [e for e in run.tape if e.name == "forward" and e.place is not None]
    for node in nodes:
        place = node.place
        if place is None or id(place[0]) in told or any(MEANT.search(at[1].name) for at in (place, *node.stack)):
            continue
        around = _around(node, forwards)
        if around is not None and around.state.get("training") is False and around.place is not None:
            told.add(id(place[0]))
            yield node, around.place


def _around(node: Node, forwards: list[Event]) -> Event | None:
    """The innermost call of a module of the program that the node is computed in."""
    found: Event | None = None
    inside = {id(at[0]) for at in node.stack}
    for event in forwards:
        if event.serial > node.serial:
            break
        if event.place is not None and id(event.place[0]) in inside and getattr(event.subject, "cls", None) is not None:
            found = event
    return found


def _where(run: Rehearsing, node: Node) -> Place:
    """The line that sets the rate, where it is a name of the same function that is set once."""
    assert node.place is not None
    call, scope = node.place
    given = [k.value for k in getattr(call, "keywords", []) if k.arg == "dropout_p"]
    if len(given) != 1 or not isinstance(given[0], ast.Name):
        return node.place
    sets = [n for n in scope.nodes if isinstance(n, ast.Assign) and any(written(t) == given[0].id for t in n.targets)]
    return (sets[0], scope) if len(sets) == 1 else node.place


def own_stays_random(run: Rehearsing) -> Iterator[Answer]:
    """A mask of random zeros that is made up for by its share, drawn while the network is in evaluation mode."""
    for node, forward in _judged(run, DRAWS):
        share, mask = _kept(run, node)
        if share is None or mask is None or node.place is None:
            continue
        around = next(e for e in run.tape if e.name == "forward" and e.place is forward)
        scaled = [u for u in users(run).get(id(mask), ()) if u.op in ("div", "mul") and _by_number(run, u, mask)]
        for user in (u for m in (mask, *scaled) for u in users(run).get(id(m), ())):
            values = [i for i in user.inputs[:2] if isinstance(i, Node)]
            drawn = {id(mask), *(id(m) for m in scaled)}
            learned = any(n.op == "param" for i in values if id(i) not in drawn for n in near(i, 40))
            if user.op != "mul" or not learned or not _made_up(run, user, mask, share) or sampled(run, around):
                continue
            text = f"random zeros are drawn in evaluation as well ({share:g} is kept): nothing asks for the mode"
            yield Answer(_left_early(node.place) or node.place, text, (forward, node.place))
            break


def _left_early(place: Place) -> Place | None:
    """``if p == 0: return x`` at the head of the function: it is there that the mode should be asked for."""
    for node in getattr(place[1].node, "body", []):
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Return):
            return (node, place[1]) if isinstance(node.body[0].value, ast.Name) else None
    return None


def _by_number(run: Rehearsing, node: Node, mask: Node) -> bool:
    """True for a mask that is multiplied with, or divided by, a number."""
    return len(node.inputs) > 1 and node.inputs[0] is mask and number(run, node.inputs[1]) is not None


def _kept(run: Rehearsing, node: Node) -> tuple[float | None, Node | None]:
    """The share of ones in a random mask, and the mask as it is multiplied with something."""
    share: float | None = None
    at = node
    if node.op.startswith("bernoulli") and node.inputs:
        full = next((n for n in near(node.inputs[0], 3) if n.op in ("full", "full_like") and len(n.inputs) > 1), None)
        given = node.inputs[1] if len(node.inputs) > 1 else full.inputs[1] if full is not None else None
        share = number(run, given)
    for _ in range(4):
        following = users(run).get(id(at), ())
        compared = next((u for u in following if u.op in ("lt", "le", "gt", "ge") and len(u.inputs) == 2), None)
        moved = next((u for u in following if u.op in ("float", "to", "type_as", "type")), None)
        if compared is not None and share is None:
            limit = number(run, compared.inputs[1])
            if limit is None or compared.inputs[0] is not at:
                return None, None
            share, at = (limit if compared.op in ("lt", "le") else 1 - limit), compared
        elif moved is not None:
            at = moved
        else:
            break
    return (share, at) if share is not None and 0 < share < 1 else (None, None)


def _made_up(run: Rehearsing, product: Node, mask: Node, share: float) -> bool:
    """True where what is left is divided by the share that is kept, before or after the product."""
    around = [*users(run).get(id(product), ()), *users(run).get(id(mask), ())]
    around += [i for i in product.inputs[:2] if isinstance(i, Node)]
    for node in around:
        known = number(run, node.inputs[1]) if node.op in ("div", "mul") and len(node.inputs) > 1 else None
        factor = known if known is not None and node.op == "div" else 1 / known if known else 0
        if known is not None and abs(factor - share) < 1e-6:
            return True
    return False
