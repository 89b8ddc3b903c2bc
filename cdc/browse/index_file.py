"""Stores an index in a SQLite file: creates its tables, adds entries, and removes the oldest entries."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from cdc.browse.entries import KINDS, Object, Summary
from cdc.errors import UserError
from cdc.model.partition import Partition
from cdc.service.private_files import FILE, make_folder, take_from_others

__all__ = [
    "Added",
    "IndexFile",
    "Progress",
    "Writer",
    "hash_of",
    "is_damage",
    "read_progress",
    "transaction",
    "used_bytes",
]

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
    """The SQLite file ``path``, which contains the index of the topics with this ``identity``. All methods raise
    sqlite3.Error.
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
        """Opens the file; creates it if it does not exist, and replaces a file of another version or identity. Raises
        the errors of ``prepare``, too.
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
            # A reader does not wait for the writer. After a crash of the machine the last entries may be missing, and
            # with them the offsets of their transaction, so that they are read again.
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

        Removes the entries with sequences below ``floor``. It is the sequence of the first record that was read from a
        partition whose older records were not read, so that the index is complete from ``floor`` on.
        """
        with transaction(self._connection):
            for (topic, number), (topic_id, offset) in progress.items():
                self._connection.execute(
                    "INSERT INTO place (topic, partition, topic_id, next_offset) VALUES (?1, ?2, ?3, ?4)"
                    " ON CONFLICT (topic, partition) DO UPDATE SET topic_id = ?3, next_offset = ?4",
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
