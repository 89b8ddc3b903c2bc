"""Defines the errors of the follower: sets of MySQL's error numbers, exceptions, and the error for a record that the
follower refuses.

Interrupted     the same statement may succeed later: the consumer waits and tries again
├── Locked      another consumer holds the follower's lock
├── Stopped     the consumer was stopped while it waited
└── WaitedOut   a statement has waited for a lock for the longest time allowed
Refused         the same statement fails again until an operator changes a row, a setting or a grant
└── Denied      the account, its password or its grants do not allow the statement
Unapplicable    the follower refuses a record; ``--skip`` may leave it out
"""

from collections.abc import Callable, Iterable
from shlex import quote

from cdc.config.table_globs import copy_command, named
from cdc.errors import PromiseError
from cdc.model.record import Record, Uri

__all__ = [
    "DUPLICATE_KEY",
    "HINTS",
    "LOCK_CONFLICT",
    "LOCK_WAIT",
    "NO_SUCH_THREAD",
    "TRANSIENT",
    "UNKNOWN_DATABASE",
    "UNREACHABLE",
    "Denied",
    "Interrupted",
    "Locked",
    "Refused",
    "Stopped",
    "Unapplicable",
    "WaitedOut",
    "position_of",
    "server_error",
    "tables_of",
    "unreadable",
]

# The error numbers are documented in the MySQL manual, "Server Error Message Reference" and "Client Error Message
# Reference".
TRANSIENT = frozenset({
    1021, 1114, 3, 20, 1026,  # a disk or table is full, or a file can't be written: an operator may free space
    # there are too many connections, statements, failed attempts to connect, transactions or threads
    1040, 1203, 1226, 1129, 1637, 1135,
    1041, 1037, 5, 1206,  # no memory, or no room for more locks
    3032, 3168,  # the server is in offline mode or not available, because an administrator is working on it
    1180, 1181,  # a COMMIT or ROLLBACK failed in the server itself, not because of the rows
    # the server is shutting down, or the connection was lost or killed
    1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031,
    1205, 1213, 3572, 3024,  # a lock wait, a deadlock, or a timeout of the statement
    1317,  # KILL QUERY
    1290, 1836,  # the server is read-only for now
    3100, 3101,  # a plugin (group replication) refused the commit
    2002, 2003, 2006, 2013, 2055,
})  # fmt: skip
# The following errors are not in the set. For 1038 (sort_buffer_size), 1153 (max_allowed_packet), 1197 and 1705
# (max_binlog_cache_size), the same statement fails again until the setting in the server's message is changed. For 1598
# and 3098, the binlog or group replication can't contain the statement at all.
UNREACHABLE = frozenset({0, 2002, 2003, 2006, 2013, 2055})
_DENIED = frozenset({1044, 1045, 1698, 1142, 1143, 1227, 1370, 3118, 3159, 1862})
DUPLICATE_KEY = frozenset({1062, 1586, 1859})
LOCK_WAIT = 1205
LOCK_CONFLICT = frozenset({LOCK_WAIT, 1213})
UNKNOWN_DATABASE = 1049
NO_SUCH_THREAD = 1094

_LOCKED = (
    "another session of the follower holds a lock that the change needs (see performance_schema.metadata_locks and "
    "data_locks); end that session and start again, or raise consumer.retry_seconds"
)
_READ_ONLY = (
    "on the follower: SET PERSIST read_only = OFF, or GRANT CONNECTION_ADMIN to our user, with which it can write "
    "under read_only, not under super_read_only; then start again"
)
_FULL = "make room on the follower's disk (data, binlogs, tmpdir), or a table's limit larger, and start again"
# Hints for errors that do not end by themselves.
HINTS = {
    **dict.fromkeys((1205, 1213, 3572), _LOCKED),
    **dict.fromkeys((1290, 1836), _READ_ONLY),
    **dict.fromkeys((3, 20, 1021, 1026, 1114), _FULL),
    1206: "on the follower: raise innodb_buffer_pool_size, of which row locks take a part; then start again",
    1129: "on the follower: TRUNCATE performance_schema.host_cache, or raise max_connect_errors; then start again",
    1226: "on the follower: raise the limit (ALTER USER … WITH MAX_…) or max_user_connections; then start again",
    3032: "on the follower: SET PERSIST offline_mode = OFF; then start again",
}


class Interrupted(Exception):
    """The server or the connection stopped a statement that may succeed later; its transaction is rolled back.

    ``code`` is the server's error number, 0 if it sent no number.
    """

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Locked(Interrupted):
    """Another consumer holds the follower's lock."""


class Stopped(Interrupted):
    """The program was stopped while it waited for the server."""


class WaitedOut(Interrupted):
    """A statement has waited for a lock for ``consumer.retry_seconds``. It is executed again only after a restart."""


class Refused(Exception):
    """The server refuses a statement with the error ``code`` and the message ``text``."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.text} (MySQL error {self.code})"


class Denied(Refused):
    """The server refuses a connection or statement because the account, its password or its grants do not allow it."""


class Unapplicable(PromiseError):
    """The follower refuses ``record``, and the stream stops at that record. ``hint`` describes the remedy; the command
    that skips the record is added to the hint.

    ``refused`` is set (normally to the server's error) if the record does not fit a table of the follower. The table
    can then also be left out until it is copied again; the hint also describes this.
    """

    def __init__(self, what: str, *, code: str, record: Record, hint: str, refused: Refused | None = None) -> None:
        super().__init__(what, code=code, where=position_of(record))
        self.record, self.refused, self._fix = record, refused, hint
        self._skipped: list[int] = []
        self._left: list[str] = []
        self._former: Callable[[str], str] = str
        self._say()

    def mend(self, hint: str, *, defined: str = "") -> None:
        """Replaces the remedy in the hint by ``hint``, a remedy for the follower's table. ``defined`` describes the
        definition of the column on both servers.
        """
        self.what = f"{self.what}; {defined}" if defined else self.what
        self._fix = f"{hint}; then start again, nothing was applied in part"
        self._say()

    def beside(self, skipped: Iterable[int], *, left: Iterable[str] = (), former: Callable[[str], str] = str) -> None:
        """Adds the ``--skip`` options of this run to the command in the hint. The skipped records were rolled back
        together with this record, so they must be skipped again.

        ``skipped`` are the sequences of the skipped records, ``left`` are the tables that are left out. ``former``
        returns the leader's name of a database.
        """
        self._skipped, self._left, self._former = list(skipped), [*map(quote, left)], former
        self._say()

    def without_skip(self) -> PromiseError:
        """Returns the error without the command that skips the record, for a record that can't be skipped."""
        return PromiseError(self.what, code=self.code, where=self.where, hint=self._fix)

    def _say(self) -> None:
        numbers = sorted({*self._skipped, self.record.sequence})
        these = "this record" if len(numbers) == 1 else "these records"
        options = " ".join(f"--skip {each}" for each in (*self._left, *numbers))
        again = ""
        if self.refused is not None and (tables := tables_of(self.record, former=self._former)):
            shown = (quote(named(*table)) for table in tables)
            left = " ".join(f"--skip {table}" for table in dict.fromkeys((*self._left, *shown)))
            again = (
                f"; or keep all data by a copy: cdc-consumer PROFILE {left} leaves what the follower refuses there "
                f"until the table is copied again, and {copy_command(*tables)} asks for that"
            )
        self.hint = f"{self._fix}{again}; to do without {these} for good: cdc-consumer PROFILE {options}"


def tables_of(record: Record, *, former: Callable[[str], str] = str) -> list[tuple[str, str]]:
    """Returns the tables that a record changes, with the leader's names; empty if they can't be left out.

    The table of a copied record can't be left out, because the copy is meant to repair a table that was left out.
    """
    if record.range is not None or record.copying:
        return []
    uris = [record.uri]
    if record.operation == "Query":
        former = str
        uris = [Uri.parse(affect[end]) for affect in record.affects for end in ("uri", "to") if end in affect]
        if not all("Table" in affect["action"] for affect in record.affects):
            return []
    return list(dict.fromkeys((former(uri.database), uri.table) for uri in uris if uri.table is not None))


def server_error(code: int, text: str, *, connection_failed: bool) -> Interrupted | Refused:
    """Returns the exception for an error of the server or of the client library; ``code`` is the error's number, or
    0."""
    if code in _DENIED:
        return Denied(code, text)
    if code in TRANSIENT or connection_failed:
        shown = f"{text or 'the connection is closed'} (MySQL error {code})" if code else text
        return Interrupted(shown, code)
    return Refused(code, text)


def position_of(record: Record) -> str:
    """Returns the sequence and the leader position of a record, for error messages."""
    return f"sequence {record.sequence}, leader position {record.position}"


def unreadable(record: Record, error: ValueError) -> Unapplicable:
    """Returns the error for a record with a value that can't be written as an SQL literal."""
    return Unapplicable(
        f"a value of {record.uri} cannot be applied: {error}",
        code="CDC-VALUE-NOT-APPLICABLE",
        record=record,
        hint="if the producer writes values that this consumer does not know, use the same version of both",
    )
