"""Cases of the judge, tests/verdicts/*.txt: what two servers logged, and what an audit of it must say.

README.md beside the cases says how they are written.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdc.spark.report.outcome import Audit
from cdc.spark.report.phrases import counted, object_name
from cdc.sql.statement import Effect, classify
from tests.generators.streams import Part, Stream, Table, checkpoint, follower_stream, query, replicate

FOLDER = Path(__file__).parents[1] / "verdicts"
_RESOURCE = "mysql-srv1"
_TUPLE = r"\((?:'(?:[^']|'')*'|[^()'])*\)"
_VALUE = re.compile(r"'(?:[^']|'')*'|[^\s,()]+")
_ROWS = re.compile(rf"(\w+)\s+(\S+)\s*((?:[^()\[\]']|{_TUPLE})*)(?:\[(.*)\])?$", re.S)
_SIDE = re.compile(r"(both|leader|follower|unlogged)(?: as (\S+))?: (.*)$")
_TABLE = re.compile(r"table (\S+) \((.*?)\)(?: key \((.*)\))?$")
_EDIT = re.compile(r"edit (leader|follower) (-?\d+|all|first \d+|last \d+): (.*)$")
_CONSUMER = ("APPLIED", "CONFLICT", "LEDGER", "PARKED", "UNPARKED", "COPIED")
_CHANGES = ("INSERT", "DELETE", "UPDATE", "CHUNK", "PIECE", "REPAIR")


@dataclass(frozen=True)
class Case:
    """The ``lines`` of a case with their numbers in the file ``where``."""

    name: str
    where: str
    lines: tuple[tuple[int, str], ...]


@dataclass
class Histories:
    """What both servers logged so far, and how the case's tables look."""

    leader: Stream = field(default_factory=Stream)
    follower: Stream = field(default_factory=follower_stream)
    tables: dict[str, Table] = field(default_factory=dict)
    database: str = "db"
    applied: int = -1

    def read(self, line: str) -> None:
        """Take up a line that is no expectation."""
        if line.startswith("database "):
            self.database = line.removeprefix("database ")
        elif found := _TABLE.match(line):
            name, columns, key = found.groups()
            path = name.replace(".", "/") if "." in name else f"{self.database}/{name}"
            self.tables[name] = Table(path, columns.split(", "), key.split(", ") if key else None)
        elif line == "the capture begins":
            # The follower's topic has nothing that was logged by then.
            self.follower.messages.clear()
            self.follower.sequence = 0
        elif found := _EDIT.match(line):
            _edit((self.leader if found[1] == "leader" else self.follower).messages, found[2], found[3])
        elif found := _SIDE.match(line):
            self._transaction(found[1], found[2] or "", found[3])
        else:
            raise ValueError(f"{line!r} is nothing that a case may say")

    def _transaction(self, side: str, gtid: str, text: str) -> None:
        parts = [self._part(each) for each in text.split("; ")]
        if side in ("leader", "both"):
            self.leader.transaction(*parts, gtid=gtid)
        if side == "both":
            self.applied = replicate(self.follower, parts, before=self.applied)
        elif side == "follower":
            self.follower.transaction(*parts, gtid=gtid)

    def _part(self, text: str) -> Part:
        verb = text.split()[0]
        if verb in _CONSUMER:
            return self._consumer(verb, [*map(_value, _VALUE.findall(text))][1:])
        if verb not in _CHANGES:
            text, _, more = text.partition(" [")
            _, effects = classify(text, database=self.database, ansi_quotes=False)
            acts = [
                (each.action, *map(_path, ((each.database, each.name), each.to)[: 1 + bool(each.to)]))
                for each in effects
            ]
            return query(text, self.database, *acts) | _more(more.removesuffix("]"))  # type: ignore[arg-type]
        found = _ROWS.match(text)
        if not found or found[2] not in self.tables:
            raise ValueError(f"{text!r} names no table of the case")
        return _change(self.tables[found[2]], verb, found[3]) | _more(found[4] or "")

    def _consumer(self, verb: str, values: list[Any]) -> Part:
        if verb == "APPLIED":
            before, self.applied = self.applied, values[0]
            names = f"{self.leader.uuid}:{values[1]}" if len(values) > 1 else None
            return checkpoint(before, values[0], names=names)
        if verb == "COPIED":
            gtids = f"{self.leader.uuid}:{values[0]}"
            return Table("cdc/copies", ["resource", "gtid_set"], ["resource"]).add((_RESOURCE, gtids))
        if verb == "CONFLICT":
            columns, told = ["resource", "sequence", "reason", "removed"], ["the row is not there", values[1]]
            return Table("cdc/conflicts", columns).add((_RESOURCE, values[0], *told))
        if verb in ("PARKED", "UNPARKED"):
            parked, state, table = values
            columns = ["resource", "database_name", "table_name", "state", "changed"]
            image = [*_texts([_RESOURCE, self.database, table]), {"Enum": state}, {"SignedInteger": parked}]
            rows = [{"cols": image}]
            operation = _of_images(rows) if verb == "PARKED" else {"Delete": {"rows": rows}}
            return {"path": "cdc/parked", "columns": columns, "operation": operation}
        sequence, before, after, resource, *told = values
        if len(told) > 2:
            told[2] = f"{self.follower.uuid}:{told[2]}"
        images = [
            {"cols": [{"String": resource or _RESOURCE}, {"SignedInteger": sequence}, {"Enum": state}, *_texts(told)]}
            for state in (before, after) if state
        ]  # fmt: skip
        columns = ["resource", "sequence", "state", *["statement", "note", "gtid"][: len(told)]]
        return {"path": "cdc/ledger", "columns": columns, "operation": _of_images(images)}


def _of_images(images: list[dict[str, Any]]) -> dict[str, Any]:
    if len(images) == 1:
        return {"Add": {"rows": images}}
    return {"Update": {"rows": [{"before_cols": images[0]["cols"], "after_cols": images[1]["cols"]}]}}


def _texts(values: Iterable[str]) -> list[dict[str, str]]:
    return [{"String": each} for each in values]


def _act(effect: Effect) -> tuple[str, str] | tuple[str, str, str]:
    act = effect.action, _path((effect.database, effect.name))
    return (*act, _path(effect.to)) if effect.to else act


def _path(name: tuple[str, str | None]) -> str:
    return "/".join(filter(None, name))


def _value(text: str) -> Any:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return None if text == "NULL" else int(text) if re.fullmatch(r"-?\d+", text) else text


def _rows(text: str) -> list[tuple[Any, ...]]:
    return [tuple(map(_value, _VALUE.findall(each[1:-1]))) for each in re.findall(_TUPLE, text)]


def _more(text: str) -> Part:
    """Further fields of a record: ``copying``, ``flags 2``."""
    words = text.split()
    return {} if not words else {words[0]: int(words[1]) if len(words) > 1 else True}


def _change(table: Table, verb: str, text: str) -> Part:
    if verb == "UPDATE":
        rows = _rows(text)
        return table.update(*zip(rows[::2], rows[1::2], strict=True))
    if verb == "REPAIR":
        keys, _, there = text.partition(" TO ")
        return table.repair(_rows(keys), *_rows(there))
    if verb == "CHUNK":
        bounds = [_rows(found[1])[0] if (found := re.search(rf"{word} ({_TUPLE})", text)) else None
                  for word in ("AFTER", "UPTO")]  # fmt: skip
        return table.chunk(*bounds, *_rows(re.sub(rf"(AFTER|UPTO) {_TUPLE}", "", text)))
    if verb == "PIECE":
        return table.piece(int(text.split()[0]), *_rows(text), last="LAST" in text)
    return table.add(*_rows(text)) if verb == "INSERT" else table.delete(*_rows(text))


def _edit(messages: list[str], which: str, what: str) -> None:
    """Damage messages: ``removed``, ``doubled``, ``inserted TEXT``, ``TEXT becomes TEXT``."""
    words = which.split()
    count = int(words[-1]) if words[-1] != "all" else len(messages)
    chosen = slice(count) if words[0] in ("first", "all") else slice(-count, None) if words[0] == "last" else slice(
        count, count + 1 or None
    )  # fmt: skip
    old, _, new = what.partition(" becomes ")
    if what.startswith("inserted "):
        messages.insert(count, what.removeprefix("inserted "))
    elif what == "numbered from 0":
        messages[chosen] = [json.dumps(json.loads(each) | {"sequence": at}) for at, each in enumerate(messages[chosen])]
    else:
        edits = {"removed": [], "doubled": [*messages[chosen] * 2]}
        messages[chosen] = edits[what] if what in edits else [each.replace(old, new) for each in messages[chosen]]


def cases() -> Iterator[Case]:
    """All cases of all files."""
    for path in sorted(FOLDER.glob("*.txt")):
        before, name, found = [], "", list[tuple[int, str]]()
        for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), "## "], start=1):
            if not line.startswith("## "):
                found += [(number, line)] * (bool(line) and not line.startswith("# "))
                continue
            if name:
                yield Case(name, path.name, (*before, *found))
            else:
                before = found
            name, found = line.removeprefix("## "), []


def summary(audit: Audit) -> list[str]:
    """What an audit says, a line for each thing; the report for a terminal says why."""
    lines = [audit.verdict + (f" at {audit.sequence}" if audit.sequence is not None else "")]
    for table in audit.tables:
        more = f", {table.not_compared} not compared" * bool(table.not_compared) + ", perhaps older" * table.older
        here = f", here {table.follower_rows}" * (table.leader_rows != table.follower_rows)
        lines.append(f"{table.table}: {counted(table.leader_rows, 'row')}{here}{more}")
    lines += sorted(map(_drifted, audit.drifted), key=_by_number)
    lines += [f"{object_name(each)}: {each.cause}" for each in audit.schema]
    for write in audit.foreign:
        what = write.statement or f"{counted(write.rows, 'row')} of {', '.join(write.tables)}"
        lines.append(f"foreign write {write.transaction.rpartition(':')[2]}: {what}")
    lines += [
        f"{each.table} {each.late}"
        if each.late
        else f"under copy: {each.table}"
        if each.parked is None
        else f"parked since {each.parked}: {each.table}"
        for each in audit.under_copy
    ]
    lines += [f"skipped {each.sequence}: {each.statement} ({each.note})" for each in audit.skipped]
    lines += [f"not replicated: {each.table}, {counted(each.rows, 'row')}" for each in audit.not_replicated]
    lines += [f"{each.kind} in the {each.side}'s stream at offset {each.offset}" for each in audit.breaks]
    lines += [
        f"before images that do not match: {times} of the {side}"
        for side, times in audit.discontinuities.items()
        if times
    ]
    return lines


def _drifted(row: Any) -> str:
    times = f" {row.rows} times" * (row.rows > 1)
    identity = " ".join(_shown(text) for _, text in sorted(row.identity.items()))
    columns = "".join(f", {name} {_shown((row.leader_image or {}).get(name))} is "
                      f"{_shown((row.follower_image or {}).get(name))}" for name in row.columns)  # fmt: skip
    return f"{row.kind}{times} {row.table} ({identity}){columns}: {row.cause}"


def _shown(text: str | None) -> str:
    """A value as a case has it."""
    if text is None:
        return "NULL"
    ((kind, value),) = json.loads(text).items()
    return f"'{value}'" if kind == "String" else str(value)


def _by_number(line: str) -> list[Any]:
    return [int(each) if each.isdigit() else each for each in re.split(r"(\d+)", line)]
