"""Rows of tables and records: box tables, tables with a header line, MLPerf records."""

from __future__ import annotations

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, StepUnit
from trainwreck.runs.build import number
from trainwreck.runs.console import tables
from trainwreck.runs.console import words as w
from trainwreck.runs.console.events import MAX_TEXT
from trainwreck.runs.console.learn import Plan
from trainwreck.runs.console.place import Placer, Values
from trainwreck.runs.console.settings import Settings
from trainwreck.runs.console.text import cut, value

MAX_HEADERS = 3
"""Tables that take turns (training and validation rows of one program)."""


class Grids:
    """Takes the lines that belong to a table or are a record, and gives their values to the placer."""

    def __init__(self, placer: Placer, settings: Settings) -> None:
        self._placer = placer
        self._settings = settings
        self._box: tables.Box | None = None
        self._columns: list[tables.Columns] = []
        self._blocks = 0

    def take(self, body: str, line: int) -> bool:
        """True if the line belongs to a table or is a record."""
        if ":::ML" in body:
            self._record(body, line)
            return True
        row = tables.BOX_ROW.match(body)
        if row is not None:
            self._box = self._box or tables.Box()
            self._box.row(row, line)
            return True
        if tables.BOX_FRAME.match(body):
            self.finish()
            return True
        opened = tables.header(body)
        if opened is not None:
            others = [c for c in self._columns if c.names != opened.names]
            self._columns = [*others[1 - MAX_HEADERS :], opened]
            return True
        return bool(self._columns) and self._row(body, line)

    def finish(self) -> None:
        """The box that was being read is complete."""
        if self._box is None or not self._box.rows:
            return
        step, key, rows = self._box.take()
        if step is None and not any(w.METRIC.search(name) for name in rows):
            return
        if step is None:
            step, self._blocks = float(self._blocks), self._blocks + 1
        unit: StepUnit = "env-step" if "timesteps" in key else "epoch" if key.startswith("epoch") else "step"
        place = self._placer.step(step, None, None, Plan(key=f"box {key}"), judge=True)
        for name, (amount, line) in rows.items():
            if name.lower().rsplit("/", 1)[-1] != key:
                self._placer.put({name: amount}, (place, unit), line)

    def _row(self, body: str, line: int) -> bool:
        """A row under the newest header that fits."""
        for columns in reversed(self._columns):
            cells = columns.read(body.split("%|")[0] if columns.separator == " " else body)
            if cells is not None and self._cells(columns, cells, line):
                return True
        return False

    def _cells(self, columns: tables.Columns, cells: dict[str, str], line: int) -> bool:
        first = columns.names[0]
        values: Values = {}
        for name in columns.names[1:]:
            parts = cut(cells[name])
            if len(parts) >= 3 and not parts[0].strip(" $"):
                values[name] = value(parts[1]) * (0.01 if parts[2].startswith("%") else 1.0)
        if first.lower() == "class" and cells[first][:1].isdigit():
            return False
        if first.lower() == "class":
            counts = ("images", "instances", "labels")
            if cells[first].lower() == "all":
                self._placer.put(
                    {f"val/{k}": v for k, v in values.items() if k.lower() not in counts}, self._placer.context, line
                )
            return True
        counter, _, total = cells[first].partition("/")
        if not counter.strip().isdigit():
            return False
        step = float(counter)
        if first.lower() in tables.EPOCH_WORDS:
            if total.strip().isdigit():
                self._placer.attempt.epoch_total = float(total)
            self._placer.epoch(step, "epoch-table")
            self._placer.put(values, (step, "epoch"), line)
        else:
            place = self._placer.step(step, None, None, Plan(key=f"table {first.lower()}"), judge=True)
            self._placer.put(values, (place, "step"), line)
        return True

    def _record(self, text: str, line: int) -> None:
        """An MLPerf record: a metric with its epoch, a mark of start or end, or a setting."""
        record = tables.mlperf(text)
        if record is None:
            return
        key, amount, epoch = record
        if key in ("run_start", "run_stop", "run_final"):
            where = Where("log", path=self._placer.path, line=line)
            kind = "banner" if key == "run_start" else "completed"
            self._placer.attempt.tell(Event(kind, text.strip()[:MAX_TEXT], where), line)
            return
        parsed = number(amount)
        if parsed is not None and epoch is not None and w.METRIC.search(key) and not tables.CONFIGURED.search(key):
            self._placer.put({key: parsed}, (epoch, "epoch"), line)
        elif amount not in ("", None):
            told = parsed if parsed is not None else amount if isinstance(amount, str) else str(amount)
            self._settings.put(key, told, line)
