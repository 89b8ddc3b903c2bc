"""Keeps an index of the records of one profile's topics in a SQLite file, and adds new records from Kafka to it.

The file is created again if it is missing or damaged, or belongs to another version of this module or to other topics.
Its size is at most about ``most_bytes``: the entries with the lowest sequences are removed first, and ``State.oldest``
shows from which sequence on the index is complete.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from cdc.browse.entries import KINDS, Object, Summary
from cdc.browse.messages import answering
from cdc.browse.records import Extent, Found, NewRecords
from cdc.config.profile import Kafka
from cdc.errors import UserError
from cdc.model.position import Partition
from cdc.service.private_files import FILE, make_folder, take_from_others

__all__ = [
    "Added",
    "Index",
    "IndexFile",
    "Progress",
    "State",
    "Writer",
    "hash_of",
    "is_damage",
    "read_progress",
    "transaction",
    "used_bytes",
]

# Stores an index in a SQLite file: creates its tables, adds entries, and removes the oldest entries.

_VERSION = 1
_BUSY_SECONDS = 30.0
# SQLITE_ERROR: a table or column is missing. Other errors (disk full, file locked) do not concern the file's content.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_REMOVED_SHARE = 10
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE place (id INTEGER PRIMARY KEY, topic TEXT, partition INTEGER, topic_id TEXT, next_offset INTEGER,
                    UNIQUE (topic, partition));
CREATE TABLE object (id INTEGER PRIMARY KEY, database TEXT, name TEXT, UNIQUE (database, name));
CREATE TABLE leader_transaction (first INTEGER PRIMARY KEY, last INTEGER, gtid TEXT, ts_us INTEGER);
CREATE INDEX by_gtid ON leader_transaction (gtid);
CREATE INDEX by_time ON leader_transaction (ts_us, first, last);
CREATE TABLE entry (sequence INTEGER PRIMARY KEY, first INTEGER, place INTEGER, "offset" INTEGER, size INTEGER,
                    kind INTEGER, object INTEGER, rows INTEGER);
CREATE TABLE changed (object INTEGER, sequence INTEGER, PRIMARY KEY (object, sequence)) WITHOUT ROWID;
CREATE TABLE row_key (sequence INTEGER, number INTEGER, object INTEGER, hash INTEGER, key TEXT,
                      PRIMARY KEY (sequence, number)) WITHOUT ROWID;
CREATE INDEX by_key ON row_key (hash, object, sequence);
"""


class Added(NamedTuple):
    """A record to add, and its first offset in Kafka."""

    partition: Partition
    offset: int
    size: int
    summary: Summary


class Progress(NamedTuple):
    """The progress in a partition: the next offset to read, and the id of the topic."""

    topic_id: str
    next_offset: int


def hash_of(key: str) -> int:
    """Computes the hash by which a key is looked up, since the text of a key may have thousands of bytes."""
    return int.from_bytes(blake2b(_utf8(key), digest_size=6).digest())


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def is_damage(error: sqlite3.Error) -> bool:
    """Whether ``error`` shows that the file is damaged, so that it must be created again."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _DAMAGED


class IndexFile:
    """The SQLite file ``path``, which contains an index. ``identity`` is a text that identifies the indexed topics: the
    brokers, the topic's name and its layout. All methods raise sqlite3.Error.
    """

    def __init__(self, path: Path, *, identity: str) -> None:
        self.path = path
        self._identity = identity

    def remove(self) -> None:
        """Deletes the file."""
        # The write-ahead log is deleted first: SQLite would apply the log of the old file to a new file.
        for suffix in ("-wal", "-shm", "-journal", ""):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + suffix).unlink()

    def connect(self, *, cache_kb: int = 8_000) -> sqlite3.Connection:
        """Opens the file; creates it if it does not exist, and replaces a file of another version or identity. Also
        raises UserError if the folder can't be used.
        """
        self.prepare()
        connection = self._opened(cache_kb)
        try:
            if not self._is_empty(connection) and not self._is_ours(connection):
                connection.close()
                self.remove()
                self.prepare()
                connection = self._opened(cache_kb)
            if self._is_empty(connection):
                self._fill(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def prepare(self) -> None:
        """Creates the folder, and an empty file if there is none. Raises UserError if the folder can't be used."""
        try:
            make_folder(self.path.parent)
            self.path.touch(mode=FILE)
            take_from_others(self.path)
        except OSError as error:
            raise UserError(
                f"cannot use the index's folder: {error}",
                code="CDC-BROWSE-FOLDER",
                where=str(self.path.parent),
                hint="name another folder, or give this user the right to write there",
            ) from None

    def _fill(self, connection: sqlite3.Connection) -> None:
        with transaction(connection):
            if self._is_empty(connection):  # another process may have created the file in the meantime
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                about = {"version": _VERSION, "identity": self._identity, "floor": 0, "entries": 0}
                connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())

    def _opened(self, cache_kb: int) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=16
        )
        try:
            # With these settings a reader does not wait for the writer. A crash of the machine may lose the newest
            # transactions. Each contains its entries and the offsets after them, so the lost entries are read again.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{cache_kb}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        try:
            about = dict(connection.execute("SELECT name, value FROM about"))
        except sqlite3.OperationalError as error:
            if not is_damage(error):
                raise
            return False
        return (about.get("version"), about.get("identity")) == (_VERSION, self._identity)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Runs the block in one write transaction, and rolls it back if the block raises an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def used_bytes(connection: sqlite3.Connection) -> int:
    """Returns the size of the content. The file may be larger, since it keeps the space of removed entries for new
    ones.
    """
    (pages,), (free,), (size,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def read_progress(connection: sqlite3.Connection) -> dict[Partition, Progress]:
    """Reads from the file how far each partition has been read."""
    found = connection.execute("SELECT topic, partition, topic_id, next_offset FROM place")
    return {(topic, number): Progress(topic_id, offset) for topic, number, topic_id, offset in found}


class Writer:
    """Adds records to the file of ``connection``, and removes the oldest entries if the content exceeds ``most_bytes``.

    There may be only one Writer at a time. All methods raise sqlite3.Error; the Writer must not be used after an error.
    """

    def __init__(self, connection: sqlite3.Connection, *, most_bytes: int) -> None:
        self._connection = connection
        self._most_bytes = most_bytes
        about = dict(connection.execute("SELECT name, value FROM about"))
        self._floor: int = about["floor"]
        self._objects: dict[Object, int] = {
            (database, name): number
            for number, database, name in connection.execute("SELECT id, database, name FROM object")
        }

    def add(self, records: Iterable[Added], progress: Mapping[Partition, Progress], *, floor: int = 0) -> None:
        """Adds records and stores the progress of the partitions, in one transaction.

        ``floor`` is above 0 if the older records of a partition were not read: it is then the sequence of the first
        record that was read from this partition. Entries with sequences below ``floor`` are removed, so that the index
        is complete from ``floor`` on.
        """
        with transaction(self._connection):
            for (topic, number), (topic_id, offset) in progress.items():
                self._connection.execute(
                    "INSERT INTO place (topic, partition, topic_id, next_offset) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (topic, partition)"
                    " DO UPDATE SET topic_id = excluded.topic_id, next_offset = excluded.next_offset",
                    (topic, number, topic_id, offset),
                )
            if floor > self._floor:
                self._remove_below(floor)
            self._insert([each for each in records if each.summary.sequence >= self._floor])
            while used_bytes(self._connection) > self._most_bytes:
                cut = self._connection.execute(
                    "SELECT sequence FROM entry ORDER BY sequence LIMIT 1"
                    " OFFSET 1 + (SELECT value FROM about WHERE name = 'entries') / ?",
                    (_REMOVED_SHARE,),
                ).fetchone()
                if cut is None:
                    break
                self._remove_below(cut[0])

    def _insert(self, records: Iterable[Added]) -> None:
        execute, many = self._connection.execute, self._connection.executemany
        places = {(topic, number): id_ for id_, topic, number in execute("SELECT id, topic, partition FROM place")}
        transactions: dict[int, tuple[int, int | None, str, int]] = {}
        entries: list[tuple[int, ...]] = []
        changed: list[tuple[int, int]] = []
        keys: list[tuple[int, int, int, int, str]] = []
        for partition, offset, size, each in self._new(records):
            last = each.sequence if each.is_last else transactions.get(each.first, (0, None))[1]
            transactions[each.first] = each.first, last, each.gtid, each.ts_us
            objects = [self._object(name) for name in each.objects]
            kind = KINDS.index(each.kind)
            entries.append((each.sequence, each.first, places[partition], offset, size, kind, objects[0], each.rows))
            changed += [(object_, each.sequence) for object_ in objects]
            keys += [(each.sequence, number, objects[0], hash_of(key), key) for number, key in enumerate(each.keys)]
        many(
            "INSERT INTO leader_transaction VALUES (?, ?, ?, ?)"
            " ON CONFLICT (first) DO UPDATE SET last = coalesce(excluded.last, last)",
            transactions.values(),
        )
        many("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entries)
        many("INSERT INTO changed VALUES (?, ?)", changed)
        many("INSERT INTO row_key VALUES (?, ?, ?, ?, ?)", keys)
        self._count(len(entries))

    def _new(self, records: Iterable[Added]) -> Iterator[Added]:
        """Yields the records that are new. If several records have the same sequence, only the first counts, as in the
        programs that apply records.
        """
        execute, seen = self._connection.execute, set[int]()
        newest = execute("SELECT max(sequence) FROM entry").fetchone()[0]
        for each in records:
            sequence = each.summary.sequence
            if sequence in seen or (
                newest is not None
                and sequence <= newest
                and execute("SELECT 1 FROM entry WHERE sequence = ?", (sequence,)).fetchone()
            ):
                continue
            seen.add(sequence)
            yield each

    def _object(self, name: Object) -> int:
        if name not in self._objects:
            made = self._connection.execute("INSERT INTO object (database, name) VALUES (?, ?)", name)
            self._objects[name] = made.lastrowid or 0
        return self._objects[name]

    def _remove_below(self, sequence: int) -> None:
        execute = self._connection.execute
        self._count(-execute("DELETE FROM entry WHERE sequence < ?", (sequence,)).rowcount)
        for table in ("row_key", "changed"):
            execute(f"DELETE FROM {table} WHERE sequence < ?", (sequence,))
        execute("DELETE FROM leader_transaction WHERE last < ?", (sequence,))
        execute("UPDATE about SET value = ? WHERE name = 'floor'", (sequence,))
        self._floor = sequence

    def _count(self, more: int) -> None:
        self._connection.execute("UPDATE about SET value = value + ? WHERE name = 'entries'", (more,))


_MOST_BYTES = 1_000_000_000
# Each entry has more bytes than this. So the index has room for at most ``most_bytes`` / _LEAST_ENTRY_BYTES entries,
# and in each partition only this many of the newest messages are read.
_LEAST_ENTRY_BYTES = 100
_BATCH_RECORDS, _BATCH_KEYS, _BATCH_SECONDS = 5_000, 20_000, 2.0
_CACHE_KB = 24_000
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class State:
    """The state of the index. It contains an entry for each record from sequence ``oldest`` to ``newest`` that was in
    Kafka when the index read Kafka; both are None if the index is empty. ``behind`` is the number of offsets that
    ``refresh`` still has to read; it is None before the first ``refresh``. ``bytes`` is the size of the content.

    If each table has its own topic, records of some tables may be missing while ``behind`` is not 0.
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
        answer or the file can't be written, and PromiseError for a message that is not a record.
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
        """Returns the number of offsets that another process, which is adding entries to the file, still has to read;
        computes it from the progress in the file.
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
                # The topic was created again, or has lost its newest messages, so the index must be built again.
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
        """Locks the file against other writers until the end of the block, and yields True; yields False if another
        process is adding to the file."""
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
        # The offsets after the last record, up to the end, belong to the markers that end Kafka transactions. They
        # count as read, except after an incomplete record.
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
