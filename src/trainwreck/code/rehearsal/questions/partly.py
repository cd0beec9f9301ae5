"""What the decoder of a variational model is given: does the reconstruction still train the encoder?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.cuts import DETACHES, HARD
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.roles import unknown
from trainwreck.code.rehearsal.questions.terms import Term, divergences, losses_of, parameters_behind, reconstructions

SOFT = frozenset(["softmax", "log_softmax", "exp"])


def _priors(found: list[Term]) -> list[Term]:
    """Divergences from a prior: Gaussian ones, and those of categories written out (``p * log p``)."""
    made = [d.term for d in divergences(found)]
    for term in found:
        node = term.node
        if node.op == "mul" and len(node.inputs) > 1 and all(isinstance(i, Node) and i.grad for i in node.inputs[:2]):
            logs = [n for n in ancestors(node) if n.op in ("log_softmax", "log")]
            if logs and any(n.op in SOFT for n in ancestors(node)):
                made.append(term)
    return made


def latent_cut_off(run: Rehearsing) -> Iterator[Answer]:
    """The reconstruction stands on the encoder and gives it no gradient: only the divergence trains it."""
    yield from _answers(run, hard=False)


def latent_hard(run: Rehearsing) -> Iterator[Answer]:
    """The same, where an operation without a slope (``argmax``, rounding) lies between."""
    yield from _answers(run, hard=True)


def _answers(run: Rehearsing, *, hard: bool) -> Iterator[Answer]:
    learning = ids(p for s in steps(run) for p in held(s))
    for event, found in losses_of(run):
        priors = _priors(found)
        if not priors:
            continue
        apart = [t for t in found if all(t is not p for p in priors)]
        data = reconstructions(apart, [])
        others = [t for t in found if all(t is not d for d in data)]
        taught = {key for t in others for key in parameters_behind(t.node, through_grad=True)}
        for term in data:
            behind = parameters_behind(term.node)
            reached = parameters_behind(term.node, through_grad=True)
            lost = {key for key in behind if key not in reached and key in learning}
            if not lost or not lost <= taught or not reached:
                continue
            beside = [parameters_behind(d.node, through_grad=True).keys() for d in data if d is not term]
            if any(lost & other for other in beside):
                continue  # another comparison with the data trains it: a second head, an auxiliary value
            cut = _cut(term.node, lost)
            if cut is not None and cut.place is not None and (cut.op in HARD) == hard and not _scored(cut, found):
                text = "the gradient of the reconstruction ends here: only the divergence trains what stands behind"
                yield Answer(cut.place, text, (event.place,) if event.place is not None else ())
                return


def _scored(cut: Node, found: list[Term]) -> bool:
    """True where the likelihood of the draw itself is weighed (a score function): that is the draw's gradient."""
    behind = [n for t in found for n in (*t.path, *ancestors((t.node, *t.factors))) if n.grad]
    asked = [n.inputs[0] for n in behind if n.op == "log_prob" and n.inputs]
    asked += [n.inputs[-1] for n in behind if n.op in ("gather", "cross_entropy", "nll_loss") and len(n.inputs) > 1]
    return any(cut is inner for i in asked for inner in ancestors(i))


def _cut(value: Node, lost: set[int]) -> Node | None:
    """The operation that takes the gradient away from what still has one."""
    for node in ancestors(value):
        if node.grad or node.op == "param":
            continue
        live = [i for i in node.inputs if isinstance(i, Node) and i.grad and i.op != "param"]
        if any(parameters_behind(i).keys() & lost for i in live):
            stops = node.op in DETACHES | HARD and not unknown(node)
            return node if stops else None
    return None
