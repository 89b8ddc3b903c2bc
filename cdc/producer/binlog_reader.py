"""Iterates in Python over the transactions in a leader's binlog, without Kafka."""

import logging
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from zlib import crc32

from cdc.config import profile as profiles
from cdc.config.profile import AUTO, COPY, OLDEST, Profile
from cdc.errors import UserError
from cdc.model.commit_entry import Entry
from cdc.model.record import Record
from cdc.producer.binlog.leader import Leader
from cdc.producer.decode.changes import Commit, RowsTransaction
from cdc.producer.filter_checks import require_masks, require_row_filters
from cdc.producer.pipeline import (
    as_on_leader,
    find_leader,
    make_decoder,
    make_dumps,
    make_router,
    start_of,
)
from cdc.producer.progress import Progress
from cdc.producer.skips import Skips
from cdc.reader.records import Change, Transaction, transaction_of
from cdc.service.logs import event

__all__ = ["Binlog", "BinlogTransaction", "binlog"]

_log = partial(event, logging.getLogger("cdc.binlog"))


@dataclass(frozen=True, slots=True)
class BinlogTransaction(Transaction):
    """A whole transaction of the leader, or only those of its changes that belong to the reader's share (see
    ``Binlog``). ``after`` is the place behind the transaction: ``binlog(profile, after=…)`` continues there.
    """

    after: str


class Binlog:
    """The transactions in a leader's binlog from a place on. Each iteration opens a new connection, and reads from that
    place again.

    ``share`` is (number, count): of ``count`` readers, the one with this number (from 0 on) gets the rows of the tables
    whose names a hash assigns to it, in order. The first reader gets all statements.

    Iterating raises UserError if the leader refuses something, such as a place that it has purged, Disconnected if the
    leader does not answer, and PromiseError for an event that can't be read faithfully.
    """

    def __init__(self, profile: Profile, *, after: str, follow: bool, share: tuple[int, int]) -> None:
        self._profile = replace(profile, producer=replace(profile.producer, start=after))
        self._follow, self._share = follow, share
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ends all iterations, from any thread or signal handler, with the leader's next heartbeat."""
        self._stop.set()

    def __iter__(self) -> Iterator[BinlogTransaction]:
        return self.transactions()

    def changes(self) -> Iterator[Change]:
        """Yields each changed row and each statement."""
        for transaction in self.transactions():
            yield from transaction.changes()

    def transactions(self) -> Iterator[BinlogTransaction]:
        """Yields each transaction with at least one change that passes the profile's filters and belongs to the share.
        Holds a transaction in memory as a whole.
        """
        leader = find_leader(self._profile)
        profile = as_on_leader(self._profile, leader)
        require_masks(profile, leader, log=_log)
        require_row_filters(profile, leader, newest=None, log=_log)
        entry = start_of(profile, leader, None, profile.filters.listed(), stop=self._stop)
        yield from self._read(profile, leader, entry)

    def _read(self, profile: Profile, leader: Leader, entry: Entry) -> Iterator[BinlogTransaction]:
        progress = Progress(entry)
        # A leader ends a dump when another one begins under the same name, and the profile's name is the producer's.
        own = replace(profile.kafka, topic=f"python-{uuid.uuid4()}")
        dumps = make_dumps(replace(profile, kafka=own, producer=replace(profile.producer, server_id=0)), leader)
        decoder = make_decoder(
            profile, leader, entry, profile.filters, log=_log,
            read_again=lambda xa: dumps.read_again(xa, progress.read_without(xa.gtid), self._stop),
        )  # fmt: skip
        wants_table = profile.filters.wants_table
        decoder.filter_by(lambda database, table: wants_table(database, table) and self._is_ours(database, table))
        router = make_router(profile, entry, profile.filters, Skips(log=_log))
        held: list[Record] = []
        with dumps.follow(entry) as source:
            for change in decoder.decode(source.chunks(self._stop)):
                for message in router.route(change):
                    record = Record.parse(bytes(message.value), where=str(progress.position))
                    if self._is_ours(record.uri.database, record.uri.table):
                        held.append(record)
                progress.note(change)
                if held and isinstance(change, Commit | RowsTransaction):
                    read = transaction_of(held)
                    yield BinlogTransaction(read.gtid, read.committed, read.records, _place(progress, leader))
                    held = []
                if not self._follow and progress.has_reached(leader.position):
                    return

    def _is_ours(self, database: str, table: str | None) -> bool:
        number, count = self._share
        return (crc32(f"{database}.{table}".encode()) % count if table else 0) == number


def _place(progress: Progress, leader: Leader) -> str:
    """Returns the place up to which the binlog is read, in the form of the profile key ``producer.start``: a GTID set,
    or the name and offset of a binlog file.
    """
    return progress.gtid_text if leader.shows_visible else str(progress.position)


def binlog(
    profile: str | PathLike[str] | Profile,
    *,
    after: str = OLDEST,
    follow: bool = False,
    share: tuple[int, int] = (0, 1),
) -> Binlog:
    """Returns the transactions in the binlog of the leader in ``profile`` (a file's path, or a Profile), which are read
    without Kafka.

    ``after`` is the place at which an iteration begins, in the form of the profile key producer.start: "oldest" (the
    oldest binlog that the leader has), "beginning", "now", a GTID set, "file:offset" for a leader without GTIDs, or the
    ``after`` of a transaction. If ``follow`` is true, an iteration waits for new transactions; otherwise it ends at the
    place that the leader has when it begins. For ``share`` see Binlog. Raises UserError for an invalid profile, place
    or share.
    """
    if after in (AUTO, COPY):
        raise UserError(
            f"binlog() copies no tables, so it can't begin with {after!r}",
            code="CDC-BINLOG-AFTER",
            hint='give "oldest", "beginning", "now", a GTID set or "file:offset"',
        )
    number, count = share
    if not 0 <= number < count:
        raise UserError(
            f"{share} is not a share of the tables",
            code="CDC-BINLOG-SHARE",
            hint="give (number, count), with numbers from 0 to count - 1",
        )
    if not isinstance(profile, Profile):
        profile = profiles.load(Path(profile), servers=profiles.MYSQL_ONLY)
    return Binlog(profile, after=after, follow=follow, share=share)
