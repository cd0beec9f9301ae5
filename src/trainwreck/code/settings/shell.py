"""Commands of shell scripts with their words expanded as far as the script itself says what they are.

Assignments are followed in the order in which they are written; one inside a branch, a loop or a function makes the
variable unknown where it gets another value there. What comes from outside (``$1``, ``$(…)``, an unset variable) is
unknown, and unknown text is marked in the word by ``HOLE``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import field

from trainwreck.code.pattern import pattern
from trainwreck.code.settings.arithmetic import evaluate
from trainwreck.code.settings.shell_words import Part, Token, tokens
from trainwreck.code.settings.tree import Place
from trainwreck.core.frozen import Frozen
from trainwreck.core.row import Row

HOLE = "\x00"
"""Stands in the text of a word for what the script does not say."""
MAX_EXPANDED = 20_000
"""Characters that a word may expand to: variables that contain one another grow without end."""
_OPENING = frozenset(["if", "for", "while", "until", "case", "select"])
_CLOSING = frozenset(["fi", "done", "esac"])
_LEADING = frozenset(["then", "do", "else", "elif", "!", "time", "{", "}", "in"])
_ASSIGN = pattern(r"([A-Za-z_]\w*)(\+?=)")
_DECLARING = frozenset(["export", "declare", "local", "readonly", "typeset"])
_EXPANSION = pattern(r"([A-Za-z_]\w*)(?:\[[@*]\])?(?:(:?[-=+?])(.*))?$", re.DOTALL)


class Arg(Row):
    """One word of a command after expansion, and the place where it is written (for a variable: where it was set)."""

    text: str
    place: Place

    @property
    def known(self) -> bool:
        return HOLE not in self.text

    @property
    def open(self) -> bool:
        """True for a word of which nothing is known: it may stand for several."""
        return not self.text.strip(HOLE)


class Variable(Row):
    """What a variable of the script holds: text (with holes), or the words of an array."""

    text: str
    place: Place
    words: tuple[Arg, ...] | None = None
    exported: bool = False


class Command(Frozen):
    """One simple command. ``certain``: it stands in no branch, loop or function. ``env`` is what it would inherit."""

    args: Sequence[Arg]
    certain: bool
    env: Mapping[str, Variable] = field(repr=False)
    own: Mapping[str, Variable] = field(default_factory=dict, repr=False)
    """Assignments written before the command itself."""

    @property
    def place(self) -> Place:
        return self.args[0].place

    @property
    def name(self) -> str:
        return self.args[0].text.rsplit("/", 1)[-1]


def commands(path: str, text: str, *, cell: int | None = None, first_line: int = 1) -> list[Command]:
    """The commands of a script in order, the environment at each. Never raises."""
    reader = _Reader(path, text, cell, first_line)
    line: list[Token] = []
    for token in tokens(text):
        if token.op == "":
            line.append(token)
        elif token.op == "(" and token.glued and line and reader.is_array(line[-1]):
            reader.open_array(line)
        elif token.op == ")" and reader.array is not None:
            reader.close_array(line)
        elif reader.array is not None:
            continue  # line breaks between the words of an array
        else:
            if token.op == "(" and token.glued and len(line) == 1:
                reader.function()
                line = []
                continue
            reader.command(line)
            line = []
            if token.op == "((":
                continue
    reader.command(line)
    return reader.found


class _Reader:
    def __init__(self, path: str, text: str, cell: int | None, first_line: int) -> None:
        self.path, self.text, self.cell, self.first = path, text, cell, first_line
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.variables: dict[str, Variable] = {}
        self.found: list[Command] = []
        self.depth = 0
        self.array: int | None = None
        self.arrays: dict[int, tuple[int, int]] = {}
        self.all_exported = False

    # ------------------------------------------------------------------ structure
    def is_array(self, token: Token) -> bool:
        first = token.parts[0] if token.parts else None
        return bool(
            first and first.kind == "text" and _ASSIGN.match(first.text) and self.text[token.end - 1 : token.end] == "="
        )

    def open_array(self, line: list[Token]) -> None:
        self.array = len(line)

    def close_array(self, line: list[Token]) -> None:
        assert self.array is not None
        self.arrays[line[self.array - 1].offset] = (self.array, len(line))
        self.array = None

    def function(self) -> None:
        self.depth += 1

    def command(self, line: list[Token]) -> None:
        arrays, self.arrays, self.array = self.arrays, {}, None
        while line:
            word = _literal(line[0])
            if word in _OPENING:
                self.depth += 1
                if word in ("for", "select") and len(line) > 1:
                    self._set(_literal(line[1]), Variable(HOLE, self.place(line[1])))
                    return
                if word == "case":
                    return
            elif word in _CLOSING:
                self.depth = max(0, self.depth - 1)
            elif word == "function":
                self.depth += 1
                return
            elif word == "}":
                self.depth = max(0, self.depth - 1)
            elif word not in _LEADING:
                break
            line = line[1:]
        if line:
            self._simple(line, arrays)

    def _simple(self, line: list[Token], arrays: dict[int, tuple[int, int]]) -> None:
        own: dict[str, Variable] = {}
        at = 0
        while at < len(line) and (assigned := self._assignment(line, at, arrays)) is not None:
            name, value, at = assigned
            own[name] = value
        if at == len(line):
            for name, value in own.items():
                self._set(name, value)
            return
        head = _literal(line[at])
        if head in _DECLARING:
            self._declare(line, at + 1, arrays, exported=head == "export" or "-x" in [_literal(t) for t in line])
            return
        args = [arg for token in line[at:] for arg in self.expand(token)]
        if not args:
            return
        if head == "set" and any(a.text in ("-a", "allexport") for a in args[1:]):
            self.all_exported = True
        if head == "unset":
            for arg in args[1:]:
                self.variables.pop(arg.text, None)
        if head == "read":
            for arg in args[1:]:
                self._set(arg.text, Variable(HOLE, arg.place))
        inherited = {n: v for n, v in self.variables.items() if v.exported}
        self.found.append(Command(args, self.depth == 0, {**inherited, **own}, own))

    def _assignment(
        self, line: list[Token], at: int, arrays: dict[int, tuple[int, int]]
    ) -> tuple[str, Variable, int] | None:
        token = line[at]
        first = token.parts[0] if token.parts else None
        found = _ASSIGN.match(first.text) if first and first.kind == "text" and not first.quoted else None
        if first is None or found is None:
            return None
        name, grows = found[1], found[2] == "+="
        before = self.variables.get(name)
        if token.offset in arrays:
            start, end = arrays[token.offset]
            words = tuple(arg for inner in line[at + 1 : at + 1 + end - start] for arg in self.expand(inner))
            if grows:
                words = ((before.words or ()) if before is not None else (Arg(HOLE, self.place(token)),)) + words
            return name, Variable(HOLE, self.place(token), words), at + 1 + end - start
        rest = Part("text", first.text[found.end() :], first.offset + found.end())
        parts = ((rest,) if rest.text else ()) + token.parts[1:]
        text = "".join(self._part(part) for part in parts)
        offset = parts[0].offset if parts else token.end
        place = self._at(offset, token.end)
        if grows:
            text = (before.text if before is not None else HOLE) + text
        exported = before.exported if before is not None else False
        return name, Variable(text[:MAX_EXPANDED], place, None, exported or self.all_exported), at + 1

    def _declare(self, line: list[Token], at: int, arrays: dict[int, tuple[int, int]], exported: bool) -> None:
        while at < len(line):
            assigned = self._assignment(line, at, arrays)
            if assigned is not None:
                name, value, at = assigned
                self._set(name, Variable(value.text, value.place, value.words, exported or value.exported))
                continue
            known = self.variables.get(_literal(line[at]))
            if known is not None and exported:
                self.variables[_literal(line[at])] = Variable(known.text, known.place, known.words, True)
            at += 1

    def _set(self, name: str, value: Variable) -> None:
        before = self.variables.get(name)
        exported = value.exported or (before is not None and before.exported)
        if self.depth and (before is None or before.text != value.text or value.words is not None):
            value = Variable(HOLE, value.place)  # holds only on some ways through the script
        self.variables[name] = Variable(value.text, value.place, value.words, exported or self.all_exported)

    # ------------------------------------------------------------------ words
    def expand(self, token: Token) -> list[Arg]:
        """The words that one written word becomes."""
        if len(token.parts) == 1:
            part = token.parts[0]
            known = self._variable(part)
            if known is not None and known.words is not None and re.search(r"\[[@*]\]", part.text):
                return list(known.words)
            if known is not None and not part.quoted and known.words is None:
                return self._split(known) or []
            if part.kind in ("variable", "command") and known is None and not part.quoted:
                text = self._part(part)
                return [Arg(t, self.place(token)) for t in text.split()] if HOLE not in text else [self._arg(token)]
        return [self._arg(token)]

    def _arg(self, token: Token) -> Arg:
        return Arg("".join(self._part(p) for p in token.parts)[:MAX_EXPANDED], self.place(token))

    def _split(self, known: Variable) -> list[Arg]:
        """The words of an unquoted variable, each at its place in the text that the variable was set to."""
        written = self._offset(known.place)
        whole = self.text[written : written + len(known.text)] == known.text
        found = []
        for word in re.finditer(r"\S+", known.text):
            start = written + word.start()
            place = self._at(start, written + word.end()) if whole else known.place
            found.append(Arg(word[0], place))
        return found

    def _variable(self, part: Part) -> Variable | None:
        if part.kind != "variable":
            return None
        found = _EXPANSION.match(part.text)
        return self.variables.get(found[1]) if found and not found[2] else None

    def _part(self, part: Part) -> str:
        if part.kind == "text":
            return part.text
        if part.kind == "arithmetic":
            value = evaluate(part.text, self._number)
            return HOLE if value is None else str(value)
        if part.kind == "command":
            return HOLE
        found = _EXPANSION.match(part.text)
        if found is None:
            return HOLE
        known = self.variables.get(found[1])
        if known is not None and known.words is not None:
            return " ".join(a.text for a in known.words)[:MAX_EXPANDED]
        if known is not None and known.text and found[2] not in (":+", "+"):
            return known.text
        # ``${NAME:-default}``: the default is what the script says; the caller may say otherwise
        if found[2] in (":-", "-", ":=", "=") and known is None and "$" not in found[3] and "`" not in found[3]:
            return found[3].strip("\"'")
        return HOLE if known is None or found[2] else known.text

    def _number(self, name: str) -> int | None:
        known = self.variables.get(name)
        text = known.text.strip() if known is not None else ""
        return int(text) if text.isdigit() and len(text) < 19 else None

    # ------------------------------------------------------------------ places
    def place(self, token: Token) -> Place:
        return self._at(token.offset, token.end)

    def _at(self, start: int, end: int) -> Place:
        line = bisect_right(self.starts, start)
        column = start - self.starts[line - 1] + 1
        last = bisect_right(self.starts, max(start, end - 1))
        return Place(
            self.path,
            line + self.first - 1,
            column,
            column + (end - start if last == line else 1),
            self.cell,
        )

    def _offset(self, place: Place) -> int:
        return self.starts[place.line - self.first] + place.column - 1


def _literal(token: Token) -> str:
    """The word as written where the shell replaces nothing in it and it is not quoted, else empty."""
    if len(token.parts) == 1 and token.parts[0].kind == "text" and not token.parts[0].quoted:
        return token.parts[0].text
    return ""
