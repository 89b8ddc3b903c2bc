"""Makes the stream that loads a follower: transactions with the remaining rows and the statements, ordered by sequence.

Each transaction ends at a record of the leader's stream; the checkpoint moves to that record. A statement in the
follower's binlog proves that all records before the statement were applied. So before a statement is executed, the
checkpoint moves to the record before it.
"""

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS
from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.source.assembler import MOST_BYTES, Transaction
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.model.position import Position
from cdc.model.record import Record, Uri
from cdc.seed.fold import Line
from cdc.seed.statements import on_part_of_rows
from cdc.seed.tables import Part

__all__ = ["NO_DATABASE", "Head", "Stream", "without_repeated"]

NO_DATABASE = ""
"""The database of records that only move the checkpoint; it passes no filter."""

_PLACE = "the topics, folded"


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a record that a checkpoint needs, without its rows."""

    sequence: int
    file: str
    position: int
    transaction: str
    ts_us: int


@dataclass(slots=True)
class _Unit:
    """The content of one transaction. ``rows`` is the number of rows in its ``lines``, and ``size`` is the size of
    these rows in characters.
    """

    lines: list[Line] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.rows += len(line.rows)
        self.size += sum(map(len, line.texts))


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream up to sequence ``upto``. ``statements`` maps sequences to statements, ``parts`` are the parts with
    rows, and ``heads`` are the records to which the checkpoint moves, without their rows.

    ``offsets`` are the offsets from which a consumer continues after ``upto``; each checkpoint of the load contains
    them. One transaction loads about ``most_rows`` rows.
    """

    resource: str
    parts: Sequence[Part]
    statements: Mapping[int, Record]
    heads: Mapping[int, Head]
    offsets: Mapping[TopicIdPartition, int]
    upto: int
    most_rows: int
    parser: RecordParser = field(default_factory=RecordParser)

    def transactions(self, lines: Iterable[Line], *, after: int) -> Iterator[Transaction]:
        """Yields the transactions after sequence ``after``; ``lines`` contain the rows, in the order of their
        sequences."""
        statements = deque(sequence for sequence in self.statements if sequence > after)
        unit, last = _Unit(), after
        for sequence, found in groupby(lines, key=attrgetter("sequence")):
            is_next = bool(statements) and statements[0] < sequence
            if unit.lines and (is_next or unit.rows >= self.most_rows or unit.size >= MOST_BYTES):
                yield self._rows(unit)
                unit, last = _Unit(), unit.lines[-1].sequence
            while statements and statements[0] < sequence:
                yield from self._statement(statements[0], after=last)
                last = statements.popleft()
            for line in without_repeated(list(found)):
                unit.add(line)
        if unit.lines:
            yield self._rows(unit)
            last = unit.lines[-1].sequence
        for sequence in statements:
            yield from self._statement(sequence, after=last)
            last = sequence
        if last < self.upto:
            yield self._empty(self.upto)

    def _statement(self, sequence: int, *, after: int) -> Iterator[Transaction]:
        if after < sequence - 1:
            yield self._empty(sequence - 1)
        yield Transaction([on_part_of_rows(self.statements[sequence])], dict(self.offsets), 0, statement=True)

    def _empty(self, sequence: int) -> Transaction:
        """Builds a transaction without rows, which only moves the checkpoint to ``sequence``."""
        head = self.heads[sequence]
        position = Position(head.file, head.position)
        uri = Uri(self.resource, NO_DATABASE)
        record = Record(uri, sequence, position, head.transaction, 0, True, head.ts_us, "Add")
        return Transaction([record], dict(self.offsets), 0, statement=False)

    def _rows(self, unit: "_Unit") -> Transaction:
        """Builds the transaction that loads the rows of ``unit``.

        Rows that are needed only for their AUTO_INCREMENT numbers come first. Each of them is inserted and immediately
        deleted, since later rows may have the same unique key. All records have the sequence and the binlog
        position of the unit's last line; the checkpoint moves to that position.
        """
        tables: dict[tuple[int, str | None], list[Line]] = {}
        for line in unit.lines:
            tables.setdefault((line.part, line.mode), []).append(line)
        newest = unit.lines[-1]
        records: list[Record] = []
        for lines in tables.values():
            for text in dict.fromkeys(text for line in lines if not line.is_left for text in line.texts):
                for operation in ("Add", "Delete"):
                    records.append(Record.parse(self._json(lines[-1], newest, operation, [text]), where=_PLACE))
        for lines in tables.values():
            if left := [text for line in lines if line.is_left for text in line.texts]:
                records.append(self.parser.parse(self._json(lines[-1], newest, "Add", left), where=_PLACE))
        rows = sum(len(record.rows) for record in records)
        return Transaction(records, dict(self.offsets), rows, statement=False, size=unit.size)

    def _json(self, line: Line, head: Line, operation: str, texts: Sequence[str]) -> bytes:
        part = self.parts[line.part]
        body = {
            "uri": str(Uri(self.resource, *part.name)), "sequence": head.sequence,
            "bn_file": {"fileName": head.file, "offset": head.position},
            "transaction": {"id": head.transaction, "index": 0, "last": True, "ts_us": head.ts_us},
            "columns": part.columns, **({"key": line.key} if line.key else {}),
            **({"sql_mode": line.mode} if line.mode is not None else {}),
            # If a parent row was changed after a child row, the child row is loaded first. So foreign keys must not be
            # checked.
            "flags": NO_FOREIGN_KEY_CHECKS,
        }  # fmt: skip
        begin = json.dumps(body, ensure_ascii=False)[:-1]
        return f'{begin}, "operation": {{"{operation}": {{"rows": [{",".join(texts)}]}}}}}}'.encode()


def without_repeated(lines: Sequence[Line]) -> list[Line]:
    """Removes repeated rows from the lines of one record. If a row is needed for its AUTO_INCREMENT number and also
    remains, only the lines of remaining rows contain it.
    """
    left = {(line.part, row) for line in lines if line.is_left for row in line.rows}
    found = [line if line.is_left else _without(left, line) for line in lines]
    return [line for line in found if line.rows]


def _without(left: Collection[tuple[int, int]], line: Line) -> Line:
    kept = [at for at, row in enumerate(line.rows) if (line.part, row) not in left]
    return line._replace(rows=[line.rows[at] for at in kept], texts=[line.texts[at] for at in kept])
