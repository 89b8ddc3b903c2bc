"""A copier between a stream and a reader, both played by a test: shows its requests, and the chunks it writes, as text.

A request is ``t`` for the first rows of the table d.t, ``t behind 3`` for those after that key, ``t, next piece`` for
more of a snapshot, ``t keys 1 2`` for rows with these keys, and ``structure`` for the statements that create the
leader's objects. A chunk is ``t: 1 2, up to 2``, ``t behind 2: 3, to its end``, ``t piece 0: 1 2``, ``t keys 1 2: 1``
or ``structure of t u``, with the filters if they change from there on.
"""

import re
import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from cdc.config.filters import FilterChange
from cdc.errors import PromiseError
from cdc.model.commit_entry import Entry
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.copy.chunk_reader import ReadChunk
from cdc.producer.copy.copier import Copier
from cdc.producer.copy.definition import CopiedColumn, TableDefinition
from cdc.producer.copy.keys import Keys
from cdc.producer.copy.reader import Answer, Read, Wanted
from cdc.producer.copy.requests import Request
from cdc.producer.copy.state import Pending, Table
from cdc.producer.decode.changes import (
    Begin,
    Beginning,
    Chunk,
    PositionAdvanced,
    Refused,
    Rows,
    Statement,
    Structure,
    TableShape,
)
from cdc.producer.progress import Progress
from cdc.sql.statement import classify

T, U = ("d", "t"), ("d", "u")
NOTHING = Read("", Position("binlog.000001", 4), frozenset())  # what a stream has read at its beginning
SHAPE = TableShape("d", "t", '"columns":["id"]', {}, 1)
DEFINITION = TableDefinition("d", "t", (CopiedColumn("id", "int", False),), ("id",), "PRIMARY", '"columns":["id"]', "")
WHOLE = TableDefinition("d", "t", (CopiedColumn("id", "int", True),), (), "", '"columns":["id"]', "", whole=True)
REFUSED = TableDefinition("d", "t", (), (), "", "", "", "it has no key")
UUID = "5b2ad69c-0000-0000-0000-000000000001"


def number(key: int) -> str:
    """A value, as records have it."""
    return f'{{"SignedInteger":{key}}}'


def row(key: int) -> str:
    """The row with this key, its only column."""
    return f'{{"cols":[{number(key)}]}}'


def keys_of(*keys: int, table: Table = T) -> Keys:
    """Keys whose rows are to be sent again."""
    return Keys(table, ("id",), tuple((number(key),) for key in keys))


def _plain(values: Iterable[str]) -> str:
    return " ".join(re.sub(r'^(?:\{"cols":\[)?\{"\w+":(\d+)\}(?:\]\})?$', r"\1", each) for each in values)


def _question(wanted: Wanted) -> str:
    if wanted.table is None:
        return "structure" + "".join(f", {each.action} {each.name}" for each in wanted.changed)
    if wanted.keys is not None:
        return f"{wanted.table[1]} keys {_plain(key for (key,) in wanted.keys.values)}"
    behind = "" if wanted.after is None else f" behind {_plain(wanted.after)}" if wanted.after else ", next piece"
    return wanted.table[1] + behind


def written(due: Chunk | Beginning) -> str:
    if isinstance(due, Beginning):
        filters = f", {' '.join(due.filters.listed()['include_tables'])} wanted" if due.filters else ""
        return "structure of " + " ".join(name for _, name in due.structure.tables) + filters
    rows = ": " + _plain(due.rows)
    if due.keys is not None:
        assert (due.after, due.upto) == (None, None)
        return f"{due.table[1]} keys {_plain(key for (key,) in due.keys)}{rows}"
    if due.piece is not None:
        assert due.after == (None if due.piece == 0 else ())
        return f"{due.table[1]} piece {due.piece}{rows}" + (", to its end" if due.upto is None else "")
    behind = f" behind {_plain(due.after)}" if due.after else ""
    return due.table[1] + behind + rows + (", to its end" if due.upto is None else f", up to {_plain(due.upto)}")


class _Reader:
    """Keeps what is asked for; the test answers."""

    wake = 0

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[Answer] = []
        self.hurried = threading.Event()
        self.sizes: list[tuple[int, int]] = []

    def written(self, sequence: int, size: int) -> None:
        self.sizes.append((sequence, size))

    def ask(self, wanted: Wanted) -> None:
        self.asked.append(_question(wanted))

    def answer(self) -> Answer | None:
        return self.answers.pop(0) if self.answers else None

    def forget(self) -> None:
        return

    def close(self) -> None:
        return


class Copying:
    """``asked`` are the requests, ``told`` the states that were written with the chunks, ``sizes`` their bytes by
    sequence.
    """

    def __init__(self, pending: Pending | None = None, *requests: Request, widened: FilterChange | None = None) -> None:
        self._reader = _Reader()
        self.asked, self.sizes = self._reader.asked, self._reader.sizes
        self.told: list[Pending] = []
        self._end = 0
        self._requests: list[Request] = []
        opened: Any = lambda: self._reader  # noqa: E731
        self._found: Any = SimpleNamespace(new=self._new_requests, found=False)
        self.copier = Copier(
            pending or Pending(),
            requests=self._found,
            open_reader=opened,
            wants_table=lambda _, name: name != "left_out",
            log=lambda *_, **__: None,
            widened=widened,
        )
        copy = pending and pending.to_json()
        self.progress = Progress(Entry(0, Position("b.1", 4), "", "", gtids_complete=True, copy=copy))
        if requests:
            self.request(*requests)

    @property
    def state(self) -> Pending:
        """The tables that are still to be copied, as the commit log has them."""
        return self.copier.pending

    @property
    def active(self) -> bool:
        """Whether there is anything to write."""
        return self.copier.active

    @property
    def is_hurried(self) -> bool:
        """Whether the reader was notified that the stream waits for it."""
        return self._reader.hurried.is_set()

    def turn(self, at: int = 0) -> str | None:
        """Lets the copier write between two transactions, at a place of the binlog; returns what it writes."""
        if at:
            self.progress.note(PositionAdvanced(Position("b.1", at)))
        due = self.copier.due(self.progress)
        if due is None:
            return None
        assert due.ts_us == self._end
        self.told.append(self.copier.after(due))
        self.copier.written(due, sequence=7)
        return written(due)

    def read(self, *keys: int, end: int, upto: str | None = None, **more: Any) -> None:
        """An answer: rows up to a key or the table's end, all of which the stream has at the place ``end``."""
        chunk = ReadChunk([row(key) for key in keys], (upto,) if upto else None, 10)
        self._answer(end, **{"definition": DEFINITION, "chunk": chunk} | more)

    def read_structure(self, structure: Structure, *, end: int) -> None:
        self._answer(end, structure=structure)

    def snapshot(self, seen: str, *, end: int) -> None:
        """An answer: a snapshot of a table without a key, which certainly contains these transactions."""
        self._answer(end, definition=WHOLE, seen=GtidSet.parse(seen))

    def piece(self, *keys: int, last: bool = False) -> None:
        """An answer: rows of the snapshot."""
        self._answer(50, definition=WHOLE, chunk=ReadChunk([row(key) for key in keys], None if last else (), 10))

    def _answer(self, end: int, **more: Any) -> None:
        self._end = end  # which is the time, too
        self._reader.answers.append(Answer(Position("b.1", end), end, **more))

    def changed(self, operation: str, key: int, *, flags: int = 0x10, table: TableShape = SHAPE) -> None:
        """A row of the stream."""
        event: Any = None
        self.copier.note(Rows(event, table, operation, [row(key).encode()], flags))

    def begins(self, transaction: int) -> Begin:
        """The begin of a transaction of the stream."""
        begin = Begin("", f"{UUID}:{transaction}", 0)
        self.copier.note(begin)
        return begin

    def holds(self, begin: Begin) -> bool:
        """Whether the transaction must wait for the copy."""
        return self.copier.holds(begin)

    def executed(self, *statements: str) -> None:
        """Statements of the stream."""
        event: Any = None
        for text in statements:
            _, effects = classify(text, database="d", ansi_quotes=False, backslash_escapes=True)
            self.copier.note(Statement(event, "d", text, effects, {}))

    def refused(self) -> None:
        """A change that can't be decoded, and is skipped."""
        event: Any = None
        self.copier.note(Refused(event, PromiseError("unknown"), (), ""))

    def request(self, *requests: Request) -> bool:
        """Delivers requests; returns whether any was taken up."""
        self.find(*requests)
        return self.copier.take_requests()

    def find(self, *requests: Request) -> None:
        """Delivers requests."""
        self._found.found = bool(requests)
        self._requests[:] = requests

    def _new_requests(self) -> list[Request]:
        self._found.found, found = False, [*self._requests]
        self._requests.clear()
        return found

    def adopt(self, pending: Pending) -> None:
        """Adopts this state, left in the stream by a former run."""
        self.copier.adopt(pending)
