"""Adapters that are put into a network by the names of its layers, and the part of it that a file keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Table, Value, candidates, is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import pairs
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.scopes import Scope

WALKS = frozenset(["named_modules", "named_children", "modules", "children"])

LOOKS = frozenset(["setattr", "getattr", "hasattr", "isinstance", "type", "id", "print", "len"])


# ---------------------------------------------------------------------- where they go
def nowhere(run: Rehearsing) -> Iterator[Answer]:
    """A walk over the layers of a network that replaces those that a test picks, and the test picks none."""
    if not steps(run):
        return
    for (node, scope), stack, outcomes in run.memo.get("outcomes", {}).values():
        loop = _walk(node, scope)
        if loop is None:
            continue
        skips = len(node.body) == 1 and isinstance(node.body[0], ast.Continue)
        if outcomes != {skips}:
            continue
        replaced = loop.body if skips else node.body
        if not any(_replaces(n) for statement in replaced for n in ast.walk(statement)) or not _wraps(loop, replaced):
            continue
        place = _chosen(node, scope, stack)
        every = (o for o in run.memo["outcomes"].values() if o[0][0] is node and o[2] != {skips})
        if any(_chosen(node, scope, other)[0] is place[0] for _, other, _ in every):
            continue  # the same names are looked for in several networks, and found in one
        if _are_layers(run, place):
            place = (node, scope)  # such layers there are: what they are compared with is something else
        yield Answer(place, "no layer of the network has such a name: none is replaced", ((node, scope),))
        return


def none_picked(run: Rehearsing) -> Iterator[Answer]:
    """A list of the layers that a test picks by their names stays empty, and a loop over it would replace them."""
    if not steps(run):
        return
    for (node, scope), stack, count, more in run.memo.get("picked", ()):
        found = [(n, c) for (n, _), _, c, _ in run.memo["picked"] if n is node]
        if count or more or any(c for _, c in found) or not isinstance(node, ast.ListComp):
            continue
        walked = node.generators[0]
        if not any(isinstance(c, ast.Call) and last_name(c.func) in WALKS for c in ast.walk(walked.iter)):
            continue
        loop = _over(node, scope) if _by_name(run, walked) else None
        if loop is None or not any(_replaces(n) for s in loop.body for n in ast.walk(s)) or not _wraps(loop, loop.body):
            continue
        test = next((t for t in walked.ifs), node)
        place = _given(ast.Tuple(walked.ifs), (test, scope), stack)
        yield Answer(place, "no layer of the network has such a name: none is replaced", ((test, scope),))
        return


def _are_layers(run: Rehearsing, place: Place) -> bool:
    """True where one of the texts that are written here is what a layer is called in the one that holds it."""
    wanted = {n.value for n in ast.walk(place[0]) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return bool(wanted) and any(wanted & set(name.split(".")) for o in run.objects if is_module(o)
                                for name, _ in run.named(o))  # fmt: skip


def _by_name(run: Rehearsing, walked: ast.comprehension) -> bool:
    """True for a test of names, among layers of a kind that the program has at all."""
    target = walked.target.elts[0] if isinstance(walked.target, ast.Tuple) and walked.target.elts else walked.target
    inner = [n for test in walked.ifs for n in ast.walk(test)]
    kinds = [n.args[1] for n in inner if isinstance(n, ast.Call) and last_name(n.func) == "isinstance" and n.args[1:]]
    wanted = {last_name(e) for k in kinds for e in (k.elts if isinstance(k, ast.Tuple) else [k])}
    named = isinstance(target, ast.Name) and any(isinstance(n, ast.Name) and n.id == target.id for n in inner)
    return named and (not wanted or any(o.name in wanted for o in run.objects))


def _over(node: ast.ListComp, scope: Scope) -> ast.For | None:
    """The loop over a list: over its name, or over itself."""
    names = {n for n, bound in scope.bindings.items() if len(bound) == 1 and bound[0].value is node}
    for loop in ast.walk(scope.node):
        if isinstance(loop, ast.For) and (
            loop.iter is node or (isinstance(loop.iter, ast.Name) and loop.iter.id in names)
        ):
            return loop
    return None


def _walk(node: ast.If, scope: Scope) -> ast.For | None:
    """The innermost loop over layers that a test stands in."""
    found = None
    for loop in ast.walk(scope.node):  # outer ones come first
        if not isinstance(loop, ast.For):
            continue
        walks = any(isinstance(c, ast.Call) and last_name(c.func) in WALKS for c in ast.walk(loop.iter))
        if walks and any(n is node for n in ast.walk(loop)):
            found = loop
    return found


def _replaces(node: ast.AST) -> bool:
    """``setattr(parent, name, ...)`` or ``parent._modules[name] = ...``."""
    if isinstance(node, ast.Call):
        return last_name(node.func) == "setattr" and len(node.args) == 3
    return isinstance(node, ast.Assign) and any(
        isinstance(t, ast.Subscript) and isinstance(t.value, ast.Attribute) and t.value.attr == "_modules"
        for t in node.targets
    )


def _wraps(loop: ast.For, replaced: list[ast.stmt]) -> bool:
    """True where the layer goes on inside of what takes its place; a helper that changes norms or activations wherever
    there are any may find none."""
    target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    layers = {target.id} if isinstance(target, ast.Name) else set()
    for node in (n for statement in replaced for n in ast.walk(statement)):
        if isinstance(node, ast.Assign) and _fetched(node.value):
            layers |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    for node in (n for statement in replaced for n in ast.walk(statement)):
        if isinstance(node, ast.Call) and last_name(node.func) not in LOOKS:
            given = [*node.args, *(k.value for k in node.keywords)]
            if any(_fetched(g) or (isinstance(g, ast.Name) and g.id in layers) for g in given):
                return True
    return False


def _fetched(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("getattr", "get_submodule")


def _chosen(node: ast.If, scope: Scope, stack: tuple[Place, ...]) -> Place:
    return _given(node.test, (node, scope), stack)


def _given(test: ast.expr, place: Place, stack: tuple[Place, ...]) -> Place:
    """Where the names are given: the call where they are an argument, a list of them, else the test."""
    scope = place[1]
    names = [n.id for n in ast.walk(test) if isinstance(n, ast.Name)]
    texts = any(isinstance(n, ast.Constant) and isinstance(n.value, str) and len(n.value) > 1 for n in ast.walk(test))
    if texts:
        return place
    given = [name for name in scope.params if name in names]
    if given and stack:
        call, caller = stack[-1]
        handed = [n.id for n in ast.walk(call) if isinstance(n, ast.Name)]
        return _by_default(given, call, scope) or _listed(handed, caller) or stack[-1]
    return _listed(names, scope) or place


def _by_default(names: list[str], call: ast.AST, scope: Scope) -> Place | None:
    """Where the default of a parameter is written that the call leaves out."""
    if not isinstance(call, ast.Call) or not isinstance(scope.node, ast.FunctionDef) or scope.parent is None:
        return None
    args = scope.node.args
    every = [*args.posonlyargs, *args.args]
    for arg, default in zip(every[len(every) - len(args.defaults) :], args.defaults, strict=True):
        left_out = every.index(arg) >= len(call.args) and all(k.arg not in (arg.arg, None) for k in call.keywords)
        if arg.arg in names and left_out:
            inner = [default.id] if isinstance(default, ast.Name) else []
            return _listed(inner, scope.parent) or (default, scope.parent)
    return None


def _listed(names: list[str], scope: Scope) -> Place | None:
    """Where one of the names is bound to texts that are written out."""
    at: Scope | None = scope
    while at is not None:
        for name in names:
            for binding in at.bindings.get(name, ()):
                if isinstance(binding.value, ast.List | ast.Tuple | ast.Set | ast.Constant):
                    return binding.value, binding.scope
        at = at.parent
    return None


# ---------------------------------------------------------------------- what is kept of them
def part_left_behind(run: Rehearsing) -> Iterator[Answer]:
    """A file that holds some of what was trained last, and a network that is run with it lacks the rest."""
    for event, table in _partial(run):
        source = {id(p): name for name, p in _sources(table).items()}
        last = [e for e in steps(run) if e.serial < event.serial and any(id(p) in source for p in held(e))]
        if not last:
            continue
        wanted = [p for p in held(last[-1]) if p.trainable is not False]
        trainer = next(
            (
                o
                for o in run.objects
                if is_module(o)
                and any(p is w for _, p in run.named(o) for w in wanted)
                and {n for n, _ in run.named(o)} >= set(source.values())
            ),
            None,
        )
        if trainer is None:
            continue
        theirs = {id(p): name for name, p in run.named(trainer)}
        names = {name for name, _ in run.named(event.subject)}
        lacking = {theirs[id(w)] for w in wanted if id(w) in theirs} & names - table.entries.keys()
        missing = sorted(_run_with(run, event, lacking) - _by_others(run, event, last[-1]))
        mine = {id(p) for _, p in run.named(event.subject)}
        again = any(e.serial > event.serial and any(id(p) in mine for p in held(e)) for e in steps(run))
        if not missing or again or trainer is event.subject:
            continue
        place = _kept_at(run, table, event)
        if place is not None:
            text = f"what was trained is kept in part: {missing[0]} is not among it, and stays as it was"
            yield Answer(place, text, tuple(p for p in (event.place,) if p is not None))
            return


def _by_others(run: Rehearsing, event: Event, trained: Event) -> set[Value]:
    """Names that the network gets from other files than this one, written after the training."""
    found: set[Value] = set()
    for other, table in _partial(run):
        if other is event or other.subject is not event.subject:
            continue
        keys = table.entries.keys()
        saved = [e for e in run.tape if e.name == "save" and e.args and isinstance(e.args[0], Table)]
        if not any(e.serial < trained.serial for e in saved if e.args[0].entries.keys() == keys):
            found |= keys
    return found


def _run_with(run: Rehearsing, event: Event, names: set[str]) -> set[str]:
    """Those of these weights that are computed with after the load: a part that only pretraining needs is not."""
    used = {id(i) for n in run.nodes if n.serial > event.serial for i in n.inputs}
    weights = dict(run.named(event.subject))
    if any(id(p) in used for p in weights.values()):
        return {name for name in names if id(weights[name]) in used}
    unseen = any(e.serial > event.serial and e.name == "forward" and e.subject is event.subject for e in run.tape)
    return names if unseen else set()


def no_place_for_them(run: Rehearsing) -> Iterator[Answer]:
    """Weights of adapters that the network which loads them has no place for: ``strict=False`` drops them."""
    matrices = {id(m) for pair in pairs(run) for m in (pair.outer, pair.inner)}
    for event, table in _partial(run):
        # what is known of a network is what it holds at the end: it may have had a place for its own weights
        if any(e.name == "state_dict" and e.subject is event.subject and e.serial < event.serial for e in run.tape):
            continue
        names = {name for name, _ in run.named(event.subject)}
        extra = [n for n, p in _sources(table).items() if n not in names and id(p) in matrices]
        if extra and event.place is not None and len(extra) < len(table.entries):
            text = f"the network has no place for {min(extra)}: strict=False drops it"
            yield Answer(event.place, text)
            return


def _partial(run: Rehearsing) -> Iterator[tuple[Event, Table]]:
    """Loads of known weights into a network that may lack some of them."""
    for event in run.tape:
        if event.name != "load_state_dict" or not is_module(event.subject) or event.get("strict", 1, True) is not False:
            continue
        given = [c for c in candidates(event.get("state_dict", 0)) if isinstance(c, Table)]
        if len(given) == 1 and not given[0].more and _sources(given[0]):
            yield event, given[0]


def _sources(table: Table) -> dict[str, Node]:
    """The parameters whose state is kept, by the names in the table."""
    found: dict[str, Node] = {}
    for name, value in table.entries.items():
        at = value
        for _ in range(8):
            if not isinstance(at, Node) or at.op == "param":
                break
            at = at.inputs[0] if at.inputs else None
        if isinstance(at, Node) and at.op == "param" and isinstance(name, str):
            found[name] = at
    return found


def _kept_at(run: Rehearsing, table: Table, event: Event) -> Place | None:
    """Where the weights are picked, else where they are written to a file, or where they are loaded."""
    for saved in run.tape:
        kept = saved.args[0] if saved.args else None
        if saved.name == "save" and isinstance(kept, Table) and kept.entries.keys() == table.entries.keys():
            return _picked_at(run, saved.place) or saved.place
    return _picked_at(run, event.place) or event.place


def _picked_at(run: Rehearsing, given: Place | None) -> Place | None:
    """Where a test picks what is saved or loaded: the names that it compares with, or the test of the comprehension."""
    node, scope = given if given is not None else (None, None)
    at = node.args[0] if isinstance(node, ast.Call) and node.args else None
    for _ in range(4):
        if at is None or scope is None:
            return None
        if isinstance(at, ast.DictComp):
            for test in at.generators[0].ifs:
                names = [n.id for n in ast.walk(test) if isinstance(n, ast.Name)]
                return _listed(names, scope) or (test, scope)
            return None
        if isinstance(at, ast.Call):
            inner = run.project.resolve(at.func, scope)
            returns = [n for n in ast.walk(inner.node) if isinstance(n, ast.Return)] if inner is not None else []
            at, scope = (returns[0].value, inner) if len(returns) == 1 else (None, None)
        elif isinstance(at, ast.Name):
            bound = [b for b in run.project.lookup(at.id, scope) if b.value is not None]
            at, scope = (bound[0].value, bound[0].scope) if len(bound) == 1 else (None, None)
        else:
            return None
    return None


__all__ = ["no_place_for_them", "none_picked", "nowhere", "part_left_behind"]
