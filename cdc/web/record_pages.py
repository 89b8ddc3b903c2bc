"""Serves the pages of records: the results of a search, one record with its rows, one transaction."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from glob import escape
from itertools import repeat
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from cdc.browse.entries import KINDS, Entry
from cdc.browse.index import Index, State
from cdc.browse.messages import as_json, as_text
from cdc.browse.query import Page, Queries
from cdc.browse.records import Cell, Decoded, RowChange
from cdc.config.profile import Kafka
from cdc.config.table_globs import named
from cdc.errors import CdcError, UserError
from cdc.model.record import Record
from cdc.model.values import Value
from cdc.spark.report.printable import Cut, cut, differing
from cdc.web.search import Search, number, record_address, records_address

__all__ = ["FollowedIndex", "Neighbours", "RecordPages", "ShownCell", "ShownRow", "Side", "row_places", "shown_row"]

_LONGEST = 2_000  # the maximum number of characters that are shown of an unchanged value


@dataclass(frozen=True, slots=True)
class Side:
    """A value in three parts; only the ``middle`` part differs from the other side. ``length`` is the length of the
    whole value in characters if it is shortened, else None.
    """

    before: str
    middle: str = ""
    after: str = ""
    length: int | None = None


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A column with its values before and after the change; None if the change has no such image."""

    column: str
    before: Side | None
    after: Side | None
    changed: bool
    is_key: bool


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row with its columns. ``key_before`` and ``key`` are the texts of its key before and after the change; None in
    a table without a key. ``changed`` is the number of columns that differ.
    """

    number: int
    key: str | None
    key_before: str | None
    cells: tuple[ShownCell, ...]
    changed: int


def shown_row(row: RowChange, record: Record) -> ShownRow:
    """Prepares a row of ``record`` for display."""
    images = (image or repeat(None) for image in record.rows[row.number])
    cells = tuple(
        _cell(_with_clock(cell, *values), is_key=cell.column in (record.key or ()))
        for cell, *values in zip(row.cells, *images, strict=False)
    )
    return ShownRow(row.number, row.key_after, row.key_before, cells, sum(cell.changed for cell in cells))


def _with_clock(cell: Cell, before: Value, after: Value) -> Cell:
    """Shows the TIMESTAMP values of a cell as date and time; records contain them as seconds since 1970."""
    return Cell(cell.column, _clock(cell.before, before), _clock(cell.after, after))


def _clock(text: str | None, value: Value) -> str | None:
    if not isinstance(value, dict) or not (found := value.get("Timestamp")) or not found["unix_time"]:
        return text  # the zero timestamp stays as it is
    moment = datetime.fromtimestamp(found["unix_time"], UTC)
    fraction = f".{found['subsecond']:06d}" if found["subsecond"] else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def _cell(cell: Cell, *, is_key: bool) -> ShownCell:
    if cell.changed and cell.before is not None and cell.after is not None:
        before, after = map(_side, differing(cell.before, cell.after))
        return ShownCell(cell.column, before, after, changed=True, is_key=is_key)
    return ShownCell(cell.column, _whole(cell.before), _whole(cell.after), changed=False, is_key=is_key)


def _side(part: Cut) -> Side:
    return Side(part.before, part.middle, part.after, part.length)


def _whole(text: str | None) -> Side | None:
    if text is None:
        return None
    return Side(cut(text, _LONGEST), length=len(text) if len(text) > _LONGEST else None)


# Keeps the index of a stream's records up to date, in a thread that reads only when a page of records is requested.

_SLICE_SECONDS = 2.0  # the interval at which the thread checks whether the program ends
_AGAIN_SECONDS = 0.2  # the pause while another process adds the records
_FRESH_SECONDS = 0.7  # a page does not wait for new records if the index was updated more recently than this


class FollowedIndex:
    """The index of the topics of ``kafka``, in a file in ``folder``, which is filled when a page is first requested.

    ``error`` is the reason why the newest update failed; it is empty if the update succeeded.
    """

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self._index = Index(kafka, folder, group="cdc-web")
        self.queries = Queries(self._index)
        self.error = ""
        self._wanted = threading.Event()
        self._done = threading.Condition()
        self._through = float("-inf")  # time.monotonic() at the beginning of the newest complete update

    def start(self, stop: threading.Event) -> None:
        """Starts the thread, which ends soon after ``stop`` is set."""
        threading.Thread(target=self._run, args=(stop,), name="index", daemon=True).start()

    def look(self, *, seconds: float) -> tuple[State, bool]:
        """Waits up to ``seconds`` until the index contains all records that are in the topics now. Returns the index's
        state, and whether it contains these records; it does not if the brokers are slow or do not answer.

        Raises UserError if the index's file can't be used.
        """
        begun = time.monotonic()
        self._wanted.set()
        with self._done:
            self._done.wait_for(lambda: self._through >= begun - _FRESH_SECONDS or self.error, seconds)
            is_fresh = self._through >= begun - _FRESH_SECONDS and not self.error
        return self._index.state(), is_fresh

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            if not self._wanted.wait(_SLICE_SECONDS):
                continue
            self._wanted.clear()
            self._read(stop)

    def _read(self, stop: threading.Event) -> None:
        """Updates the index until it contains all records that are in the topics now."""
        begun, error, before = time.monotonic(), "", None
        try:
            while not stop.is_set() and (left := self._index.refresh(stop=stop, seconds=_SLICE_SECONDS).behind):
                self.error = ""
                if left == before:  # no progress: another process updates the index
                    stop.wait(_AGAIN_SECONDS)
                before = left
        except CdcError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001 - a defect in the index must not end the other pages
            error = f"{type(failure).__name__}: {failure}"
        with self._done:
            self.error = error
            if not error:
                self._through = begun
            self._done.notify_all()


# Serves the pages of records: the results of a search, one record with its rows, one transaction.

_ON_A_PAGE, _ROWS, _TABLES = 50, 20, 50
_WAIT_SECONDS = 1.0  # a page waits this long for new records, and then shows the records in the index
_RAW_SHOWN = 100_000  # the page of a larger record only links to the record's JSON
_GONE = ("CDC-BROWSE-NO-RECORD", "CDC-BROWSE-RECORD-GONE")

Show = Callable[..., str]
"""Renders the template with the given name and values."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A row, and the addresses of its previous change, its next change and its history; an address is None if there is
    no such page.
    """

    row: ShownRow
    previous: str | None
    next: str | None
    history: str | None


def row_places(record: Decoded, *, key: str, begin: int) -> Iterator[RowChange]:
    """Yields the rows of a page: the rows with ``key``, or, if the key is empty, all rows from number ``begin`` on."""
    if not key:
        yield from record.rows(begin=begin, count=_ROWS)
        return
    found = 0
    for start in range(0, len(record.record.rows), 1_000):
        for row in record.rows(begin=start, count=1_000):
            if key in (row.key_before, row.key_after):
                yield row
                found += 1
                if found == _ROWS:
                    return


class RecordPages:
    """Serves the record pages of the stream ``number`` from its index. ``show`` renders a template."""

    def __init__(self, number: int, index: FollowedIndex, *, topic: str, show: Show) -> None:
        self._number = number
        self._index = index
        self._topic = topic
        self._show = partial(show, tab=f"records-{number}", number=number, topic=topic)

    def routes(self) -> list[Route]:
        """Returns the routes of the pages."""
        begin = f"/streams/{self._number}"
        return [
            Route(f"{begin}/records", self._guarded(self._records)),
            Route(f"{begin}/records/{{sequence:number}}", self._guarded(self._record)),
            Route(f"{begin}/records/{{sequence:number}}/raw", self._guarded(self._raw)),
            Route(f"{begin}/transactions/{{sequence:number}}", self._guarded(self._transaction)),
            Route(f"{begin}/tables", self._tables),
        ]

    def _guarded(self, answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def guarded(request: Request) -> Response:
            try:
                return answer(request)
            except CdcError as error:
                text = self._show("problem.html", error=error, back=records_address(self._number))
                return HTMLResponse(text, 404 if error.code in _GONE else 503)

        return guarded

    def _records(self, request: Request) -> Response:
        query = request.query_params
        search = Search.parse({name: query.getlist(name) for name in query})
        (state, is_fresh), problem, page = self._index.look(seconds=_WAIT_SECONDS), None, Page((), None)
        try:
            page = self._index.queries.page(
                search.filter(), cursor=search.cursor, newest_first=not search.oldest_first, limit=_ON_A_PAGE
            )
        except UserError as error:
            problem = error
        return HTMLResponse(self._show(
            "records.html", search=search, kinds=KINDS, entries=page.entries, following=page.next, state=state,
            is_fresh=is_fresh, index_error=self._index.error, problem=problem, link=self._link, glob=_glob,
        ))  # fmt: skip

    def _link(self, sequence: int, key: str | None = None) -> str:
        return record_address(self._number, sequence, key=key)

    def _tables(self, request: Request) -> Response:
        """Returns the tables whose names contain a text, as suggestions in the search form."""
        try:
            return JSONResponse(self._index.queries.tables(request.query_params.get("text", ""), limit=_TABLES))
        except CdcError:
            return JSONResponse([])

    def _entry(self, request: Request) -> Entry:
        """Returns the entry of the record in the address. Raises UserError if the index does not contain it."""
        sequence = request.path_params["sequence"]
        queries = self._index.queries
        found = queries.entry(sequence)
        if found is None:
            self._index.look(seconds=_WAIT_SECONDS)
            found = queries.entry(sequence)
        if found is None:
            raise UserError(
                f"the index has no record {sequence}", code="CDC-BROWSE-NO-RECORD", where=f"topic {self._topic}",
                hint="it may be older than what the index keeps, not be written yet, or not be indexed yet",
            )  # fmt: skip
        return found

    def _record(self, request: Request) -> Response:
        entry, queries = self._entry(request), self._index.queries
        decoded = queries.record(entry.sequence)
        key, begin = request.query_params.get("key", ""), number(request.query_params.get("begin")) or 0
        rows = [self._with_neighbours(entry, row, decoded.record) for row in row_places(decoded, key=key, begin=begin)]
        text = decoded.text if len(decoded.text) <= _RAW_SHOWN else None
        return HTMLResponse(self._show(
            "record.html", entry=entry, record=decoded.record, message=decoded.message, rows=rows, key=key,
            begin=begin, rows_step=_ROWS, raw=text and as_json(text), size=len(decoded.text), link=self._link,
            text=as_text, context=_context(decoded.record), glob=_glob,
            around=[queries.entry(sequence) for sequence in (entry.sequence - 1, entry.sequence + 1)],
        ))  # fmt: skip

    def _with_neighbours(self, entry: Entry, row: RowChange, record: Record) -> Neighbours:
        shown = shown_row(row, record)
        if shown.key is None or shown.key_before is None:
            return Neighbours(shown, None, None, None)
        before = self._index.queries.row_before(entry.sequence, shown.key_before)
        after = self._index.queries.row_after(entry.sequence, shown.key)
        return Neighbours(
            shown,
            None if before is None else self._link(before.sequence, shown.key_before),
            None if after is None else self._link(after.sequence, shown.key),
            records_address(self._number, table=_glob(entry), key=shown.key),
        )

    def _raw(self, request: Request) -> Response:
        decoded = self._index.queries.record(self._entry(request).sequence)
        return Response(decoded.text, media_type="application/json")

    def _transaction(self, request: Request) -> Response:
        entry = self._entry(request)
        page = self._index.queries.transaction(
            entry.sequence, cursor=number(request.query_params.get("cursor")), limit=_ON_A_PAGE * 4
        )
        return HTMLResponse(
            self._show(
                "transaction.html", entry=entry, entries=page.entries, following=page.next, link=self._link, glob=_glob
            )
        )


def _glob(entry: Entry) -> str:
    """Writes a glob that matches only the table of ``entry``."""
    return named(escape(entry.database), escape(entry.table))


def _context(record: Record) -> list[tuple[str, str]]:
    """Lists the session variables with which the statement was executed, with their values as text."""
    given: dict[str, Any] = record.context or {}
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in given.items()]
