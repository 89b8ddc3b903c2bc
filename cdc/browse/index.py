"""Keeps an index of the records of one profile's topics in a file, and adds new records from Kafka to it.

The file is created again if it is missing or damaged, or belongs to another version of this module or to other topics.
Its size is at most about ``most_bytes``: the entries with the lowest sequences are removed first, and ``State.oldest``
shows from which sequence on the index is complete.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from cdc.browse.entries import Summary
from cdc.browse.index_file import Added, IndexFile, Progress, Writer, is_damage, read_progress, used_bytes
from cdc.browse.messages import answering
from cdc.browse.new_records import Extent, Found, NewRecords
from cdc.config.profile import Kafka
from cdc.errors import UserError
from cdc.model.partition import Partition
from cdc.service.private_files import FILE

__all__ = ["Index", "State"]

_MOST_BYTES = 1_000_000_000
# Each entry has more bytes than this. So only as many of a partition's newest offsets are read as have room in
# ``most_bytes``.
_LEAST_ENTRY_BYTES = 100
_BATCH_RECORDS, _BATCH_KEYS, _BATCH_SECONDS = 5_000, 20_000, 2.0
_CACHE_KB = 24_000
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class State:
    """The state of the index. It contains an entry for each record from sequence ``oldest`` to ``newest`` that was in
    Kafka when the index read Kafka; both are None if the index is empty. ``behind`` is the number of offsets that
    ``refresh`` still has to read; it is None before the first ``refresh``. ``bytes`` is the size of the content.

    While ``behind`` is not 0, records of some tables may be missing if tables have their own topics.
    """

    oldest: int | None
    newest: int | None
    entries: int
    bytes: int
    behind: int | None


class Index:
    """The index of the topics of ``kafka``, in a file in ``folder``; only the owner of file and folder can read them.

    ``group`` names the consumer group, under which nothing is ever committed. All methods may be called by any thread.
    """

    def __init__(self, kafka: Kafka, folder: Path, *, group: str = "cdc-tail", most_bytes: int = _MOST_BYTES) -> None:
        self.kafka = kafka
        self.properties = kafka.properties(group_id=group)
        names = kafka.topics()
        identity = " ".join((kafka.bootstrap_servers, names.topic, names.layout))
        name = f"{names.topic[:80]}-{sha256(identity.encode()).hexdigest()[:12]}.sqlite"
        self.file = IndexFile(folder / name, identity=identity)
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._behind: int | None = None
        self._is_damaged = False

    def refresh(self, *, stop: threading.Event | None = None, seconds: float | None = None) -> State:
        """Adds the new records up to the present ends of the topics, until ``stop`` is set, or for about ``seconds``.

        If another thread or process is already adding records, returns at once; ``behind`` is then the number of
        offsets that the other thread or process has not read yet. Raises UserError or Disconnected if Kafka does not
        answer or the file can't be written, PromiseError for a message that is not a record.
        """
        if self._lock.acquire(blocking=False):
            try:
                with answering(self.properties, where=f"topic {self.kafka.topic}"):
                    give_up = None if seconds is None else time.monotonic() + seconds
                    self._refresh(stop or threading.Event(), give_up)
            finally:
                self._lock.release()
        return self.state()

    def state(self) -> State:
        """Returns the present state of the index. Raises UserError if the file can't be used."""
        return self.ask(self._state, State(None, None, 0, 0, self._behind))

    def ask(self, question: Callable[[sqlite3.Connection], Answer], default: Answer) -> Answer:
        """Calls ``question`` with a connection that sees one state of the file in all queries, and returns its result.

        Returns ``default`` if the file is damaged; the next ``refresh`` creates it again. Raises UserError for other
        errors of the file.
        """
        try:
            with closing(self.file.connect()) as connection:
                connection.execute("BEGIN")
                return question(connection)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise self._unusable(error) from None
            self._is_damaged = True
            return default

    def _state(self, connection: sqlite3.Connection) -> State:
        about = dict(connection.execute("SELECT name, value FROM about"))
        # There are two statements, since SQLite uses the key for a minimum or a maximum, but not for both in one
        # statement.
        (oldest,) = connection.execute("SELECT min(sequence) FROM entry").fetchone()
        (newest,) = connection.execute("SELECT max(sequence) FROM entry").fetchone()
        oldest = None if oldest is None else max(about["floor"], oldest)
        return State(oldest, newest, about["entries"], used_bytes(connection), self._behind)

    def _refresh(self, stop: threading.Event, give_up: float | None) -> None:
        source = NewRecords(self.kafka, self.properties)
        extents = source.extents()
        try:
            with self._only_writer() as is_only:
                if not is_only:
                    self._behind = self._left(extents)
                else:
                    try:
                        self._read(source, extents, stop, give_up)
                    except sqlite3.Error as error:
                        if not is_damage(error):
                            raise
                        self._is_damaged = True
                        self._read(source, extents, stop, give_up)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _left(self, extents: Mapping[Partition, Extent]) -> int:
        """Returns the number of offsets that are still to be read, according to the file, to which another process is
        adding entries.
        """
        none: dict[Partition, Progress] = {}
        known = self.ask(read_progress, none)
        return self._plan(known if _continues(known, extents) else none, extents).behind

    def _plan(self, known: Mapping[Partition, Progress], extents: Mapping[Partition, Extent]) -> "_Plan":
        return _Plan.of(known, extents, most_offsets=self._most_bytes // _LEAST_ENTRY_BYTES)

    def _read(
        self, source: NewRecords, extents: Mapping[Partition, Extent], stop: threading.Event, give_up: float | None
    ) -> None:
        if self._is_damaged:
            self.file.remove()
            self._is_damaged = False
        with closing(self.file.connect(cache_kb=_CACHE_KB)) as connection:
            writer = Writer(connection, most_bytes=self._most_bytes)
            known = read_progress(connection)
            if not _continues(known, extents):
                # The topic was created again, or has lost messages.
                self._is_damaged = True
            else:
                plan = self._plan(known, extents)
                self._behind = plan.behind
                for batch in plan.batches(source):
                    writer.add(batch.records, batch.progress, floor=batch.floor)
                    self._behind = plan.behind
                    if stop.is_set() or (give_up is not None and time.monotonic() > give_up):
                        break
        if self._is_damaged:
            self._read(source, extents, stop, give_up)

    @contextmanager
    def _only_writer(self) -> Iterator[bool]:
        """Yields True if no other process is adding to the file; then no other process adds to it until the end of the
        block."""
        self.file.prepare()
        lock = os.open(self.file.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(lock)

    def _unusable(self, error: sqlite3.Error) -> UserError:
        return UserError(
            f"the index can't be used: {error}",
            code="CDC-BROWSE-FOLDER",
            where=str(self.file.path),
            hint="make room on its disk, or name another folder; the file may be deleted, it is made again",
        )


def _continues(known: Mapping[Partition, Progress], extents: Mapping[Partition, Extent]) -> bool:
    """Whether the topics are the same as before, and still contain all messages that were read."""
    both = ((known[each], extents[each]) for each in known.keys() & extents.keys())
    return all(before.topic_id == now.topic_id and before.next_offset <= now.end for before, now in both)


class _Batch(NamedTuple):
    """Records to add in one transaction of the file, and each partition's next offset after them."""

    records: list[Added]
    progress: dict[Partition, Progress]
    floor: int


class _Plan:
    """Reads partitions up to their ends; ``behind`` is the number of offsets that are still to be read."""

    def __init__(self, starts: dict[Partition, int], extents: Mapping[Partition, Extent], late: set[Partition]) -> None:
        self._starts = starts
        self._extents = extents
        self._late = late
        self._next = dict(starts)
        self._records: list[Added] = []
        self._keys = 0
        self._floor = 0

    @classmethod
    def of(cls, known: Mapping[Partition, Progress], extents: Mapping[Partition, Extent], *, most_offsets: int) -> Self:
        """Plans to read each partition from where the index ends, but only its last ``most_offsets`` offsets."""
        begins = {
            each: max(extent.begin, known[each].next_offset if each in known else 0) for each, extent in extents.items()
        }
        starts = {each: max(begin, extents[each].end - most_offsets) for each, begin in begins.items()}
        return cls(starts, extents, {each for each, start in starts.items() if start > begins[each]})

    @property
    def behind(self) -> int:
        return sum(extent.end - self._next[each] for each, extent in self._extents.items())

    def batches(self, source: NewRecords) -> Iterator[_Batch]:
        """Yields the records in batches of limited size."""
        ends = {partition: extent.end for partition, extent in self._extents.items()}
        incomplete: set[Partition] = set()
        since = time.monotonic()
        for found in source.read(self._starts, ends):
            self._next[found.partition] = found.next_offset
            (incomplete.discard if found.next_offset > found.offset else incomplete.add)(found.partition)
            self._add(found)
            full = len(self._records) >= _BATCH_RECORDS or self._keys >= _BATCH_KEYS
            if full or time.monotonic() > since + _BATCH_SECONDS:
                yield self._batch()
                since = time.monotonic()
        # The marker that ends a Kafka transaction uses an offset, too.
        self._next |= {partition: end for partition, end in ends.items() if partition not in incomplete}
        yield self._batch()

    def _add(self, found: Found) -> None:
        if found.record is None:
            return
        summary = Summary.of(found.record)
        if found.partition in self._late:
            self._late.discard(found.partition)
            self._floor = max(self._floor, summary.sequence)
        self._records.append(Added(found.partition, found.offset, found.size, summary))
        self._keys += len(summary.keys)

    def _batch(self) -> _Batch:
        progress = {each: Progress(self._extents[each].topic_id, offset) for each, offset in self._next.items()}
        records, self._records, self._keys = self._records, [], 0
        return _Batch(records, progress, self._floor)
