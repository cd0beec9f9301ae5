"""Uses that stand behind a look at the release: a ``try`` around an import, a test of a version."""

from __future__ import annotations

import ast
import re

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

GUARDS = pattern(
    r"version|hasattr|signature|getattr|available|TYPE_CHECKING|inspect|greater|less|(?:^|_)[lg][te]e?_|\d_\d|legacy|old",
    re.IGNORECASE,
)
"""Words in the test of a branch that say that somebody looked which release there is."""
ERRORS = ("ImportError", "ModuleNotFoundError", "TypeError", "AttributeError", "Exception", "BaseException", "")


def guarded(project: Project, node: ast.AST, scope: Scope) -> bool:
    """True where a ``try`` or a test of the release stands around ``node``."""
    below = node
    for above in project.ancestors(node, scope):
        if isinstance(above, ast.Try) and below in above.body and _catches(above):
            return True
        if isinstance(above, ast.ExceptHandler):
            return True
        if isinstance(above, ast.If | ast.IfExp):
            test = ast.unparse(above.test)
            if GUARDS.search(test):
                return True
        below = above
    return False


def _catches(node: ast.Try) -> bool:
    for handler in node.handlers:
        names = ast.unparse(handler.type) if handler.type is not None else ""
        if any(name and name in names for name in ERRORS) or not names:
            return True
    return False
