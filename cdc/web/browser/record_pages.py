"""Serves the pages of records: the results of a search, one record with its rows, one transaction."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from glob import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from cdc.browse.entries import KINDS, Entry
from cdc.browse.messages import as_json, as_text
from cdc.browse.query import Page
from cdc.browse.records import Decoded, RowChange
from cdc.config.table_globs import named
from cdc.errors import CdcError, UserError
from cdc.model.record import Record
from cdc.web.browser.changes import ShownRow, shown_row
from cdc.web.browser.indexes import FollowedIndex
from cdc.web.browser.numbers import number
from cdc.web.browser.search import Search, record_address, records_address

__all__ = ["Neighbours", "RecordPages", "row_places"]

_ON_A_PAGE, _ROWS, _TABLES = 50, 20, 50
_WAIT_SECONDS = 1.0  # a page waits this long for new records, and then shows the records in the index
_RAW_SHOWN = 100_000  # a larger record is not shown as JSON in its page; its JSON has an address of its own
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
