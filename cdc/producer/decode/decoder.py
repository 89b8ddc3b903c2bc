"""Decodes binlog events into changes, and stops with an error at any event that it does not know. The events of an XA
transaction become changes when the transaction commits.

``WholeTransactions`` is the decoding part of the fast path (``cdc.producer.binlog.packets``): it decodes a whole
transaction at once if it contains only rows. If it can't decode a transaction, ``Decoder`` decodes the transaction
event by event, and reports an error at the position of the event that causes it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from struct import Struct
from struct import error as StructError

from cdc.errors import PromiseError
from cdc.model.commit_entry import PreparedXa
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.compressed import payload, unpacked
from cdc.producer.binlog.events import HEADER_BYTES, Gtid, RawEvent, gtid, named, row_mode
from cdc.producer.binlog.packets import SimpleTransaction, flat
from cdc.producer.decode.changes import (
    Begin,
    Change,
    Commit,
    Damaged,
    Idle,
    OtherEvent,
    PositionAdvanced,
    Prepared,
    Refused,
    Rows,
    RowsTransaction,
    Statement,
    nameless,
    not_closed,
    refused_statement,
    unknown_event,
    unreadable,
)
from cdc.producer.decode.query_event import LoggedStatement, logged_statement
from cdc.producer.decode.row_selection import selected_rows
from cdc.producer.decode.table_cache import ConditionOf, TableCache
from cdc.sql.effects import needing_more

__all__ = [
    "BEGIN",
    "UNREADABLE",
    "Decoder",
    "WholeTransactions",
    "XaTransactions",
    "end_of_rows_only",
    "start_of_incomplete",
    "xid_of",
]

# Keeps the events of prepared XA transactions until their commit, when they become changes.
#
# XA PREPARE is logged as a transaction of its own: GTID, XA START, the rows, XA END, XA_prepare. XA COMMIT or XA
# ROLLBACK is another transaction, without rows, perhaps days later (MySQL manual, "XA Transactions"; MySQL source,
# class XA_prepare_event). Until XA COMMIT or XA ROLLBACK, a small number of rows is kept in memory; a large number, and
# all rows after a restart, are read from the leader again.

# An XA_prepare event contains: whether the transaction commits in one phase (1), the format of the xid (4), the lengths
# of the xid's two parts (4 + 4), and then these two parts.
_XA_PREPARE = Struct("<BIII")
_MAX_KEPT = 16_000_000  # bytes; the limit for the kept events of all prepared transactions together
_XID = re.compile(r"XA\s+\w+\s+(X'[0-9a-f]*',X'[0-9a-f]*',\d+)\s*", re.IGNORECASE)


class XaTransactions:
    """The prepared XA transactions by xid. ``read_again`` reads the events of a transaction from the leader a second
    time.
    """

    def __init__(
        self, prepared: Mapping[str, PreparedXa], *, read_again: Callable[[PreparedXa], Iterable[RawEvent]]
    ) -> None:
        self._prepared = dict(prepared)
        self._read_again = read_again
        self._kept: dict[str, list[RawEvent]] = {}
        self._bytes = 0
        self._open: list[RawEvent] | None = None
        self._location: PreparedXa | None = None

    @property
    def is_open(self) -> bool:
        """Whether the next events belong to an XA transaction."""
        return self._location is not None

    def start(self, location: PreparedXa) -> None:
        """Handles XA START at ``location``: from now on, the events of this transaction are kept."""
        self._location, self._open = location, []

    def keep(self, event: RawEvent) -> None:
        """Keeps a table map or rows event of the open XA transaction, unless the kept events take too much memory."""
        if self._open is None:
            return
        self._open.append(event)
        self._bytes += event.size
        if self._bytes > _MAX_KEPT:
            self._drop(self._open)
            self._open = None

    def prepare(self, event: RawEvent) -> tuple[str, PreparedXa, bool]:
        """Handles XA_prepare; returns the open transaction's xid and location, and whether it commits at once, in one
        phase."""
        if self._location is None:
            raise PromiseError(
                "an XA transaction is prepared that never started",
                code="CDC-XA-BEFORE-START",
                where=str(event.position),
            )
        location, held = self._location, self._open
        self._location = self._open = None
        in_one_phase, form, gtrid, bqual = _XA_PREPARE.unpack_from(event.data, HEADER_BYTES)
        data = event.data[HEADER_BYTES + _XA_PREPARE.size :]
        xid = f"X'{data[:gtrid].hex()}',X'{data[gtrid : gtrid + bqual].hex()}',{form}"
        self._prepared[xid] = location
        if held is not None:
            self._kept[xid] = held
        return xid, location, bool(in_one_phase)

    def committed(self, xid: str, event: RawEvent) -> Iterable[RawEvent]:
        """Returns the table maps and rows of the XA transaction that ``event`` commits. Raises PromiseError if this
        transaction is unknown.
        """
        location = self._prepared.pop(xid, None)
        if location is None:
            raise PromiseError(
                f"XA transaction {xid} commits, but it was prepared before the producer's start",
                code="CDC-XA-BEFORE-START",
                where=str(event.position),
                hint="start where no XA transaction is prepared: a new topic and a fresh copy of the leader",
            )
        held = self._kept.pop(xid, None)
        if held is None:
            return self._read_again(location)
        self._drop(held)
        return held

    def sql_mode(self, xid: str) -> str | None:
        """Returns the sql_mode with which the rows of a prepared transaction were logged. The session that commits the
        transaction may have another sql_mode.
        """
        location = self._prepared.get(xid)
        return location and location.sql_mode

    def rolled_back(self, xid: str) -> None:
        """Drops the prepared transaction ``xid``. An unknown transaction is ignored: it was prepared before the
        producer's start.
        """
        self._prepared.pop(xid, None)
        self._drop(self._kept.pop(xid, []))

    def _drop(self, events: list[RawEvent]) -> None:
        self._bytes -= sum(event.size for event in events)


def xid_of(statement: str) -> str:
    """Extracts the xid from an XA statement of the binlog, in the form that ``prepare`` returns. Raises ValueError if
    the statement contains no xid.
    """
    found = _XID.match(statement)
    if found is None:
        raise ValueError(f"an XA statement without an xid: {statement[:80]}")
    return found[1].replace("X'", "x'").lower().replace("x'", "X'")


BEGIN = b"\0BEGIN"  # the end of a Query event that begins a transaction
# The errors that readers of events raise for broken bytes.
UNREADABLE = (ValueError, LookupError, StructError, RuntimeError, OverflowError)
# Matches event types, one byte each. A transaction of rows consists of GTID, Query, table maps and rows, and Xid.
_ROWS_ONLY = re.compile(rb"[\x21\x22\x2a\xa2]\x02(?:\x13+[\x1e-\x20\x27]+)+\x10")
# Matches an incomplete transaction of rows at the end of a chunk of events.
_INCOMPLETE = re.compile(rb"[\x21\x22\x2a\xa2](?:\x02\x13[\x13\x1e-\x20\x27]*)?\Z")
_LONGEST_INCOMPLETE = 1_000_000  # bytes
_new = tuple.__new__  # the constructor RowsTransaction(…) takes twice as long


class WholeTransactions:
    """Decodes transactions that contain only rows. ``tables`` contains the table maps that are known so far."""

    def __init__(self, tables: TableCache) -> None:
        self._tables = tables

    def of_simple(self, transaction: SimpleTransaction) -> RowsTransaction | None:
        """Decodes ``transaction``; returns None if its table map is new, or if one of its events can't be read."""
        _, gtid_event, begin, _, _, _, file, end = transaction
        if not begin.endswith(BEGIN):
            return None
        try:
            gtid, commit_us = named(gtid_event)
            mode = row_mode(begin)
            rows = self._tables.rows_of(transaction)
        except (PromiseError, *UNREADABLE):
            return None
        if rows is None:
            return None
        name = gtid or str(transaction.events()[0].position)
        return _new(RowsTransaction, (_new(Begin, (name, gtid, commit_us, mode, begin)), rows, file, end))

    def of_events(self, events: Sequence[RawEvent]) -> RowsTransaction | None:
        """Decodes ``events``, which are exactly one transaction of rows; ``end_of_rows_only`` has found its end.

        Returns None if any of its events can't be read, or is on disk.
        """
        if not events[1].data.endswith(BEGIN):
            return None
        found = []
        self._tables.forget_ids()
        try:
            for event in events[2:-1]:
                if event[0] == et.TABLE_MAP:
                    self._tables.map(event)
                elif event[5] is not None:
                    return None  # an event on disk is decoded separately, after the events before it have been written
                elif (rows := self._tables.rows(event)) is not None:
                    if rows.table.matches is None:
                        found.append(rows)
                    else:
                        found += selected_rows(rows, rows.table.matches)
            name, commit_us = gtid(events[0])
            mode = row_mode(events[1].data)
        except (PromiseError, *UNREADABLE):
            return None
        last = events[-1]
        return RowsTransaction(
            Begin(name or str(events[0].position), name, commit_us, mode, events[1].data), found, last.file, last.end
        )


def end_of_rows_only(types: bytes, at: int) -> int | None:
    """Finds the end of the transaction of rows that starts at ``types[at]``; ``types`` are the types of consecutive
    events.

    Returns the index after the transaction; None if no transaction of rows starts there, or if its end is not in
    ``types``.
    """
    found = _ROWS_ONLY.match(types, at)
    return found.end() if found else None


def start_of_incomplete(events: Sequence[RawEvent | SimpleTransaction], types: bytes) -> int:
    """Returns the index in ``events`` at which an incomplete transaction of rows begins; the number of events if there
    is none.

    The events of such a transaction may wait for its remaining events, since the transaction can't be committed without
    them. Events that have more than 1 MB together do not wait, since they would take too much memory.
    """
    found = _INCOMPLETE.search(types)
    if found and sum(each.size for each in flat(events[found.start() :])) < _LONGEST_INCOMPLETE:
        return found.start()
    return len(events)


_KEPT = frozenset({et.TABLE_MAP, *et.ROWS, *et.OTHER_ROWS})  # events of an XA transaction, kept until it commits
_OF_TRANSACTIONS = frozenset({"begin", "commit", "rollback", "savepoint", "xa"})  # statements that change no object


class Decoder:
    """Decodes one leader's events.

    ``tables`` decodes the rows of the tables that pass the filters; ``xa`` keeps prepared transactions; ``log(event,
    **fields)`` is called for each statement that is not replicated by design. If ``other_events`` is true, ``decode``
    also yields events that are part of no record. ``folds_names`` is true if the leader has ``lower_case_table_names =
    1``. ``rewrite`` converts a statement to one that followers execute. ``replace_refused`` may add, to an event that
    can't be decoded, the tables to copy in its place.
    """

    def __init__(
        self,
        tables: TableCache,
        *,
        xa: XaTransactions,
        log: Callable[..., None],
        other_events: bool = False,
        folds_names: bool = False,
        rewrite: Callable[[LoggedStatement], LoggedStatement] = lambda statement: statement,
        replace_refused: Callable[[Refused], Refused] = lambda refused: refused,
    ) -> None:
        self._tables = tables
        self._whole_transactions = WholeTransactions(tables)
        self._xa = xa
        self._log = log
        self._other_events = other_events
        self._folds_names = folds_names
        self._rewrite = rewrite
        self._replace_refused = replace_refused
        self._named: Gtid | None = None  # the GTID of the newest GTID event, until its transaction begins
        self._named_at: Position | None = None
        self._in_transaction = False
        self._saw_rows = False
        self._ends: str | None = None  # xid of the XA transaction that the open transaction commits or rolls back
        self._needs_more = False  # whether the next statement needs events that were logged before it
        self._server = ""  # the version of the server that wrote the present file

    def filter_by(self, wants_table: Callable[[str, str], bool], condition: ConditionOf | None = None) -> None:
        """Sets the filters that hold from the next transaction on; if ``condition`` is None, the conditions of rows
        stay.
        """
        self._tables.filter_by(wants_table, condition)

    @property
    def filtered(self) -> int:
        """The number of rows events of tables that do not pass the filters."""
        return self._tables.filtered

    def decode(self, chunks: Iterable[Sequence[RawEvent | SimpleTransaction]]) -> Iterator[Change]:
        """Yields the changes that ``chunks`` of events contain, in order. An empty chunk means that the leader has no
        more events for now.

        Raises PromiseError with the position for an event, a type, a statement or bytes that can't be replicated
        exactly.
        """
        waiting: Sequence[RawEvent | SimpleTransaction] = ()
        for arrived in chunks:
            if not arrived:
                # A transaction is open from its GTID event on.
                yield Idle(inside=bool(waiting) or self._in_transaction or self._named is not None)
                continue
            if self._other_events:
                for event in flat(arrived):
                    if event.type not in et.IN_RECORDS:
                        yield OtherEvent(event)
            events, types = _with_types([*waiting, *arrived])
            end = start_of_incomplete(events, types)
            yield from self._chunk(events[:end], types[:end])
            waiting = events[end:]

    def _chunk(self, events: Sequence[RawEvent | SimpleTransaction], types: bytes) -> Iterator[Change]:
        """Yields the changes of ``events``; each complete and readable transaction of rows becomes a single change."""
        at = 0
        while at < len(events):
            event = events[at]
            is_between = not self._in_transaction and self._named is None
            if isinstance(event, SimpleTransaction):
                whole = self._whole_transactions.of_simple(event) if is_between else None
                if whole is not None:
                    yield whole
                else:
                    yield from self._chunk(*_with_types(event.events()))
                at += 1
                continue
            if is_between and (end := end_of_rows_only(types, at)):
                whole = self._whole_transactions.of_events([*flat(events[at:end])])
                if whole is not None:
                    yield whole
                    at = end
                    continue
            yield from self._alone(event)
            at += 1

    def _alone(self, event: RawEvent) -> Iterator[Change]:
        """Yields the changes of one event. An event that can't be replicated becomes a Refused, so that the stream may
        continue after it.
        """
        inside = self._in_transaction
        try:
            yield from self._event(event)
            return
        except Damaged:
            raise
        except PromiseError as error:
            refusal = error
        except UNREADABLE as error:
            refusal = unreadable(event, error)
        if not inside and not self._in_transaction and (self._named is None or self._xa.is_open):
            raise refusal from None
        if not self._in_transaction:
            yield self._begin(event, None)
        yield self._replace_refused(Refused(event, refusal, self._tables.drop(event)))
        if not inside:
            # This event ends the transaction that it has begun, or should have begun.
            yield self._commit(event)

    def _event(self, event: RawEvent) -> Iterator[Change]:
        kind = event.type
        if self._xa.is_open and kind in _KEPT:
            self._xa.keep(event)
        elif kind in et.ROWS:
            yield from self._rows(event)
        elif kind == et.TABLE_MAP:
            self._tables.map(event)
        elif kind in et.GTIDS:
            self._require_closed(event)
            self._named, self._named_at = gtid(event), event.position
        elif kind == et.QUERY:
            yield from self._query(event)
        elif kind == et.XID:
            yield self._commit(event)
        elif kind == et.XA_PREPARE:
            yield from self._prepare(event)
        elif kind == et.TRANSACTION_PAYLOAD:
            for inner in payload(event):
                yield from self._alone(inner)
        elif kind in et.HEARTBEATS:
            yield from self._moved(ev.heartbeat(event))
        elif kind == et.ROTATE:
            yield from self._moved(ev.rotate(event))
        elif kind == et.FORMAT_DESCRIPTION:
            self._server = ev.server_version(event)
        elif kind == et.EXECUTE_LOAD_QUERY:
            yield from self._statement(event, self._logged(ev.load_query(event)))
        elif kind in et.OF_A_STATEMENT:
            self._needs_more = True
        elif kind not in et.HARMLESS and not (kind in et.OTHER_ROWS and self._tables.is_left_out(event)):
            raise unknown_event(event)

    def _rows(self, event: RawEvent) -> Iterator[Rows]:
        rows = self._tables.rows(event)
        if rows is None:
            return
        if not self._in_transaction:
            raise Damaged("rows came outside of a transaction", code="CDC-EVENT-DAMAGED", where=str(event.position))
        for part in (rows,) if rows.table.matches is None else selected_rows(rows, rows.table.matches):
            self._saw_rows = True
            yield part

    def _moved(self, end: Position) -> Iterator[PositionAdvanced]:
        # Inside a transaction no position is reported, because a producer could not resume there: it always resumes at
        # the start of a transaction.
        if not self._in_transaction and self._named is None and end.offset:
            yield PositionAdvanced(end)

    def _begin(self, event: RawEvent, mode: str | None) -> Begin:
        named = self._named
        if named is None:
            raise nameless(event)
        self._require_closed(event)
        self._tables.forget_ids()
        self._named = None
        self._in_transaction, self._saw_rows = True, False
        query = event.data if event.type == et.QUERY else b""
        return Begin(named.gtid or str(self._named_at), named.gtid, named.commit_us, mode, query)

    def _require_closed(self, event: RawEvent) -> None:
        if self._in_transaction or self._xa.is_open:
            raise not_closed(event)

    def _commit(self, event: RawEvent) -> Commit:
        self._in_transaction, self._ends, xid = False, None, self._ends
        return Commit(Position(event.file, event.end), xid)

    def _prepare(self, event: RawEvent) -> Iterator[Change]:
        xid, location, commits = self._xa.prepare(event)
        if commits:
            yield from self._xa_commit(xid, event)
        else:
            self._named = None
            yield Prepared(xid, location, Position(event.file, event.end))

    def _xa_commit(self, xid: str, event: RawEvent) -> Iterator[Change]:
        self._ends = xid  # the field is set even if the rows can't be read, since the operator may skip this event
        yield self._begin(event, self._xa.sql_mode(xid))
        for held in self._xa.committed(xid, event):
            yield from self._alone(held)
        yield self._commit(event)

    def _xa_statement(self, text: str, event: RawEvent) -> Iterator[Change]:
        verb = text.split(None, 2)[1].upper()
        if verb == "START":
            named, at = self._named, self._named_at
            if named is None or at is None:
                raise nameless(event)
            self._xa.start(PreparedXa(named.gtid, at.file, at.offset, row_mode(event.data)))
        elif verb == "COMMIT":
            yield from self._xa_commit(xid_of(text), event)
        elif verb == "ROLLBACK":
            self._ends = xid_of(text)
            self._xa.rolled_back(self._ends)
            yield self._begin(event, None)
            yield self._commit(event)
        elif verb != "END":
            raise refused_statement("unknown", text, event)

    def _query(self, event: RawEvent) -> Iterator[Change]:
        if event.data.endswith(BEGIN):
            yield self._begin(event, row_mode(event.data))
            return
        yield from self._statement(event, self._logged(event))

    def _logged(self, query: RawEvent) -> LoggedStatement:
        statement = logged_statement(query, self._tables.collations, folds_names=self._folds_names, server=self._server)
        return self._rewrite(statement)

    def _statement(self, event: RawEvent, statement: LoggedStatement) -> Iterator[Change]:
        kind, text = statement.kind, statement.text
        effects = needing_more(statement.effects) if self._needs_more else statement.effects
        self._needs_more = False
        if kind not in _OF_TRANSACTIONS:
            self._tables.forget_allowed(effects)
        if statement.failed is not None:
            yield from self._refused(event, statement.failed, statement)
        elif kind == "begin":
            yield self._begin(event, row_mode(event.data))
        elif kind == "commit" or (kind == "rollback" and not self._saw_rows):
            yield self._commit(event)
        elif kind == "savepoint" or (kind == "rollback to" and not self._saw_rows and not self._xa.is_open):
            return
        elif kind == "xa":
            yield from self._xa_statement(text, event)
        elif kind in ("dml", "rollback to") and self._xa.is_open:
            self._xa.keep(event)
        elif effects:
            change = Statement(
                event, statement.database, text, effects, statement.context, statement.unreadable, statement.exact,
                statement.copies, statement.unlike,
            )  # fmt: skip
            yield from self._in_one(event, change)
        elif kind in ("account", "admin", "temporary"):
            self._log("statement not replicated", kind=kind, statement=statement.shown, position=event.position)
            yield from self._in_one(event)
        else:
            yield from self._refused(event, refused_statement(kind, text, event), statement)
            if kind == "rollback":
                yield self._commit(event)

    def _refused(self, event: RawEvent, error: PromiseError, statement: LoggedStatement) -> Iterator[Change]:
        fires = statement.kind == "dml"
        yield from self._in_one(event, Refused(event, error, statement.changed, statement.shown, fires))

    def _in_one(self, event: RawEvent, *changes: Change) -> Iterator[Change]:
        """Yields the ``changes`` of one event, with Begin and Commit around them if the event is a transaction of its
        own.
        """
        alone = not self._in_transaction
        if alone:
            yield self._begin(event, row_mode(event.data) if event.type == et.QUERY else None)
        yield from changes
        if alone:
            yield self._commit(event)


def _with_types(
    events: Sequence[RawEvent | SimpleTransaction],
) -> tuple[Sequence[RawEvent | SimpleTransaction], bytes]:
    """Returns ``events``, with small compressed transactions unpacked, and the type of each event."""
    types = bytes([event[0] for event in events])
    if et.TRANSACTION_PAYLOAD in types:
        events = list(unpacked(events, broken=UNREADABLE))
        types = bytes([event[0] for event in events])
    return events, types
