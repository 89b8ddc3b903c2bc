"""Binlog events to changes: follows transactions and table maps, and stops at whatever it does not know."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from struct import error as StructError

from cdc.errors import PromiseError
from cdc.model.commit_entry import PreparedXa
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.compressed import payload, unpacked
from cdc.producer.binlog.events import RawEvent, Single, flat
from cdc.producer.binlog.gtid_event import Gtid, gtid, named
from cdc.producer.decode.changes import Begin, Change, Commit, Idle, Moved, Prepared, Refused, Statement, Whole
from cdc.producer.decode.query_event import LoggedStatement, logged_statement
from cdc.producer.decode.row_sql_mode import row_mode
from cdc.producer.decode.table_cache import Tables
from cdc.producer.decode.unsupported import Damaged, nameless, not_closed, refused_statement, unknown_event, unreadable
from cdc.producer.decode.xa import Xa, xid_of
from cdc.sql.effects import needing_more

__all__ = ["Decoder"]

_BROKEN = (ValueError, LookupError, StructError, RuntimeError, OverflowError)
# The types of the events of a transaction: its GTID, a Query, table maps and rows, Xid.
_ROWS_ONLY = re.compile(rb"[\x21\x22\x2a]\x02(?:\x13+[\x1e-\x20]+)+\x10")
# The beginning of one, at the end of a chunk: it waits for its end, since it could not be committed before anyway.
_BEGUN = re.compile(rb"[\x21\x22\x2a](?:\x02\x13[\x13\x1e-\x20]*)?\Z")
_BEGIN = b"\0BEGIN"  # the end of a Query that begins a transaction
_MOST_BEGUN = 1_000_000  # bytes
_HELD = frozenset({et.TABLE_MAP, *et.ROWS, *et.OTHER_ROWS})  # of an XA transaction, until it commits
_new = tuple.__new__  # Whole(…) itself takes twice as long


class Decoder:
    """Turns one leader's events into changes.

    ``wants_table(database, table)`` is asked once a table map, so that the rows of other tables are never decoded;
    ``collations`` maps the server's collation ids to (character set, collation); ``xa`` holds prepared transactions;
    ``log(event, **fields)`` is told of each statement that is passed over by design.
    """

    def __init__(
        self,
        *,
        wants_table: Callable[[str, str], bool],
        collations: Mapping[int, tuple[str, str]],
        xa: Xa,
        log: Callable[..., None],
    ) -> None:
        charsets = {number: charset for number, (charset, _) in collations.items()}
        self._tables = Tables(wants_table=wants_table, charsets=charsets)
        self._collations = collations
        self._xa = xa
        self._log = log
        self._named: Gtid | None = None
        self._named_at: Position | None = None
        self._in_transaction = False
        self._saw_rows = False
        self._ends: str | None = None  # the XA transaction that the open one commits or rolls back
        self._needs_more = False  # whether the next statement needs what was logged before it

    @property
    def filtered(self) -> int:
        """How many rows events were of tables that are not wanted."""
        return self._tables.filtered

    def decode(self, chunks: Iterable[Sequence[RawEvent | Single]]) -> Iterator[Change]:
        """The changes of ``chunks`` of events, in order; an empty one stands for "nothing more right now".

        Raises PromiseError with the position for an event, a type, a statement or bytes that it can't carry exactly.
        """
        begun: Sequence[RawEvent | Single] = ()
        for arrived in chunks:
            if not arrived:
                # A GTID event comes before all others of a transaction.
                yield Idle(inside=bool(begun) or self._in_transaction or self._named is not None)
                continue
            events, begun = [*begun, *arrived], ()
            kinds, at = bytes([event[0] for event in events]), 0
            if et.TRANSACTION_PAYLOAD in kinds:
                events = list(unpacked(events, broken=_BROKEN))
                kinds = bytes([event[0] for event in events])
            while at < len(events):
                event = events[at]
                # Most transactions are a few rows and arrive whole: then they are taken in one go.
                if isinstance(event, Single):
                    whole = self._single(event)
                    if whole is None:
                        yield from self.decode([event.events()])
                    else:
                        yield whole
                    at += 1
                    continue
                found = _ROWS_ONLY.match(kinds, at)
                if found and not self._in_transaction and self._named is None:
                    whole = self._whole([*flat(events[at : found.end()])])
                    if whole is not None:
                        yield whole
                        at = found.end()
                        continue
                elif _BEGUN.match(kinds, at) and sum(len(each[1]) for each in flat(events[at:])) < _MOST_BEGUN:
                    begun = events[at:]
                    break
                yield from self._alone(event)
                at += 1

    def _alone(self, event: RawEvent) -> Iterator[Change]:
        """The changes of one event; where it can't be carried, that as one, so that the stream may go on behind it."""
        inside = self._in_transaction
        try:
            yield from self._event(event)
            return
        except Damaged:
            raise
        except PromiseError as error:
            refusal = error
        except _BROKEN as error:
            refusal = unreadable(event, error)
        if not inside and not self._in_transaction and (self._named is None or self._xa.is_open):
            raise refusal from None
        if not self._in_transaction:
            yield self._begin(event, None)
        yield Refused(event, refusal, self._tables.drop(event))
        if not inside:
            # What began with this event, or would have, ends with it.
            yield self._commit(event)

    def _single(self, single: Single) -> Whole | None:
        """The transaction of ``single``; None where its table is new, something else is open, or it can't be read:
        one by one its events go on or fail, each at its own position."""
        _, gtid_event, begin, _, _, _, file, end = single
        if not begin.endswith(_BEGIN) or self._in_transaction or self._named is not None:
            return None
        try:
            gtid, commit_us = named(gtid_event)
            mode = row_mode(begin)
            rows = self._tables.rows_of(single)
        except (PromiseError, *_BROKEN):
            return None
        if rows is None:
            return None
        name = gtid or str(single.events()[0].position)
        return _new(Whole, (_new(Begin, (name, gtid, commit_us, mode)), rows, file, end))

    def _whole(self, events: Sequence[RawEvent]) -> Whole | None:
        """The transaction of ``events``: GTID, Query, table maps and rows, Xid; None where it needs a closer look."""
        if not events[1][1].endswith(_BEGIN):
            return None
        found = []
        try:
            for event in events[2:-1]:
                if event[0] == et.TABLE_MAP:
                    self._tables.map(event)
                elif (rows := self._tables.rows(event)) is not None:
                    found.append(rows)
            name, commit_us = gtid(events[0])
            mode = row_mode(events[1][1])
        except (PromiseError, *_BROKEN):
            return None  # read once more, one by one, it fails at its own position
        last = events[-1]
        return Whole(Begin(name or str(events[0].position), name, commit_us, mode), found, last[2], last[4])

    def _event(self, event: RawEvent) -> Iterator[Change]:
        kind = event.type
        if self._xa.is_open and kind in _HELD:
            self._xa.hold(event)
        elif kind in et.ROWS:
            rows = self._tables.rows(event)
            if rows is not None:
                self._saw_rows = True
                if not self._in_transaction:
                    raise Damaged("rows came outside of a transaction", where=str(event.position))
                yield rows
        elif kind == et.TABLE_MAP:
            self._tables.map(event)
        elif kind in (et.GTID, et.ANONYMOUS_GTID, et.GTID_TAGGED):
            self._require_closed(event)
            self._named, self._named_at = gtid(event), event.position
        elif kind == et.QUERY:
            yield from self._query(event)
        elif kind == et.XID:
            yield self._commit(event)
        elif kind == et.XA_PREPARE:
            yield from self._prepare(event)
        elif kind == et.TRANSACTION_PAYLOAD:
            yield from self.decode([inner] for inner in payload(event))
        elif kind in (et.HEARTBEAT, et.HEARTBEAT_V2):
            yield from self._moved(ev.heartbeat(event))
        elif kind == et.ROTATE:
            self._tables.forget_numbers()
            yield from self._moved(ev.rotate(event))
        elif kind == et.FORMAT_DESCRIPTION:
            self._tables.forget_numbers()
        elif kind == et.EXECUTE_LOAD_QUERY:
            yield from self._statement(event, logged_statement(ev.load_query(event), self._collations))
        elif kind in et.OF_A_STATEMENT:
            self._needs_more = True
        elif kind not in et.HARMLESS and not (kind in et.OTHER_ROWS and self._tables.is_left_out(event)):
            raise unknown_event(event)

    def _moved(self, end: Position) -> Iterator[Moved]:
        # Inside a transaction the place to resume from is still its start.
        if not self._in_transaction and self._named is None and end.offset:
            yield Moved(end)

    def _begin(self, event: RawEvent, mode: str | None) -> Begin:
        named = self._named
        if named is None:
            raise nameless(event)
        self._require_closed(event)
        self._named = None
        self._in_transaction, self._saw_rows = True, False
        return Begin(named.gtid or str(self._named_at), named.gtid, named.commit_us, mode)

    def _require_closed(self, event: RawEvent) -> None:
        if self._in_transaction or self._xa.is_open:
            raise not_closed(event)

    def _commit(self, event: RawEvent) -> Commit:
        self._in_transaction, self._ends, xid = False, None, self._ends
        return Commit(Position(event.file, event.end), xid)

    def _prepare(self, event: RawEvent) -> Iterator[Change]:
        xid, place, commits = self._xa.prepare(event)
        if commits:
            yield from self._xa_commit(xid, event)
        else:
            self._named = None
            yield Prepared(xid, place, Position(event.file, event.end))

    def _xa_commit(self, xid: str, event: RawEvent) -> Iterator[Change]:
        self._ends = xid  # also where what it did can't be read, and an operator leaves it out
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
        if event.data.endswith(_BEGIN):
            yield self._begin(event, row_mode(event.data))
            return
        yield from self._statement(event, logged_statement(event, self._collations))

    def _statement(self, event: RawEvent, statement: LoggedStatement) -> Iterator[Change]:
        kind, text = statement.kind, statement.text
        effects = needing_more(statement.effects) if self._needs_more else statement.effects
        self._needs_more = False
        if statement.failed is not None:
            yield from self._refused(event, statement.failed, statement)
        elif kind == "begin":
            yield self._begin(event, row_mode(event.data))
        elif kind == "commit" or (kind == "rollback" and not self._saw_rows):
            yield self._commit(event)
        elif kind == "savepoint":
            return
        elif kind == "xa":
            yield from self._xa_statement(text, event)
        elif kind == "dml" and self._xa.is_open:
            self._xa.hold(event)
        elif effects:
            change = Statement(event, statement.database, text, effects, statement.context, statement.unreadable)
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
        """The changes of an event that may be a transaction of its own."""
        alone = not self._in_transaction
        if alone:
            yield self._begin(event, row_mode(event.data) if event.type == et.QUERY else None)
        yield from changes
        if alone:
            yield self._commit(event)
