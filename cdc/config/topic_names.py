"""Derives the topic of a record from the names of its database and table alone, so that it never changes.

In layout "single" all records are in ``kafka.topic``. In layout "per_table" the rows and statements of a table are in
``<prefix><database>_<table>``, and all other records are in ``<prefix>mysql_binlog_events``. The following rule makes
names legal in Kafka and different for different tables:

The name is unchanged if the database's name contains no ``_``, both names contain only ``A-Z a-z 0-9 _ -``, and the
whole name has at most 249 characters, is not the name of another topic of this leader, and does not end in ``-`` and 12
hex digits. Otherwise all characters outside of ``A-Z a-z 0-9 _ -`` are replaced by ``-``, and the name is shortened.
Then ``-`` is appended, and the first 12 hex digits of the SHA-256 of ``database/table``, with both names
percent-encoded.

For example, the topic of ``a``.``b_c`` is ``a_b_c``, and the topic of ``a_b``.``c`` is ``a_b_c-`` followed by 12
digits. A dot is also replaced, because Kafka refuses two names that differ only in ``.`` and ``_``. Letters keep their
case.
"""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import quote

from cdc.config.table_globs import TableGlobs
from cdc.errors import UserError

__all__ = [
    "COMMITS",
    "PER_TABLE",
    "SINGLE",
    "Topics",
    "debezium_heartbeats",
    "debezium_topic",
    "debezium_transactions",
    "is_debezium_topic",
    "require_prefix",
]

SINGLE, PER_TABLE = "single", "per_table"
COMMITS = ".commits"
_COPIES = ".copies"  # must not be longer than COMMITS, since only the length of names with COMMITS is checked
_EVENTS = "mysql_binlog_events"
_LONGEST = 249  # org.apache.kafka.common.internals.Topic.MAX_NAME_LENGTH
_LONGEST_PREFIX = 100
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")
_PLAIN = re.compile(r"[A-Za-z0-9-]+_[A-Za-z0-9_-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_NOT_IN_DEBEZIUM = re.compile(r"[^A-Za-z0-9._-]")
_DIGITS = 12
_MADE = re.compile(rf".*-[0-9a-f]{{{_DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of one leader's topics. ``tables`` are globs over ``db.table``; each matching table has its
    own topic.
    """

    topic: str
    layout: str = SINGLE
    prefix: str = ""
    tables: tuple[str, ...] = ("*",)
    _own: TableGlobs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises UserError for names that Kafka does not allow."""
        _require_legal(self.topic, "kafka.topic", longest=_LONGEST - len(COMMITS))
        if self.prefix:
            _require_legal(self.prefix, "kafka.prefix", longest=_LONGEST_PREFIX)
        own = TableGlobs.of(self.tables, key="kafka.tables", names_database=False)
        object.__setattr__(self, "_own", own)

    @property
    def main(self) -> str:
        """The topic that exists from the start and is used as the topic of the leader: in layout "single" the topic of
        the records, otherwise the commit log.
        """
        return self.topic if self.layout == SINGLE else self.commits

    @property
    def commits(self) -> str:
        """The topic of the commit log."""
        return self.topic + COMMITS

    @property
    def copies(self) -> str:
        """The topic of the requests to copy tables."""
        return self.topic + _COPIES

    @property
    def first(self) -> tuple[str, ...]:
        """The topics that exist before the first record: the commit log, and in layout "single" also the topic of the
        records."""
        return (self.commits, self.topic) if self.layout == SINGLE else (self.commits,)

    @property
    def events(self) -> str:
        """The topic for statements that affect no table or several tables, and for binlog events that belong to no
        record.
        """
        return self.prefix + _EVENTS

    def is_events(self, topic: str) -> bool:
        """Whether ``topic`` may be the topic that ``events`` returns, with this prefix or with a former prefix."""
        return topic.endswith(_EVENTS) and topic != self.topic

    def of_table(self, database: str, table: str) -> str:
        """Returns the topic of a table's rows."""
        if self.layout == SINGLE:
            return self.topic
        if not self._own.match(database, table):
            return self.events
        name = f"{self.prefix}{database}_{table}"
        if self._is_plain(database, table, name):
            return name
        exact = f"{quote(database, safe='')}/{quote(table, safe='')}"
        digits = hashlib.sha256(exact.encode()).hexdigest()[:_DIGITS]
        readable = self.prefix + _ILLEGAL.sub("-", f"{database}_{table}")
        return f"{readable[: _LONGEST - 1 - _DIGITS]}-{digits}"

    def of_statement(self, named: Collection[tuple[str, str]]) -> str:
        """Returns the topic of a statement that names the tables ``named``. If there is only one table, it is that
        table's topic, otherwise ``events``.
        """
        if self.layout == SINGLE:
            return self.topic
        return self.of_table(*next(iter(named))) if len(named) == 1 else self.events

    def _is_plain(self, database: str, table: str, name: str) -> bool:
        return (
            "_" not in database
            and len(name) <= _LONGEST
            and _PLAIN.fullmatch(f"{database}_{table}") is not None
            and _MADE.fullmatch(name) is None
            and not any(_same_in_metrics(name, other) for other in (self.events, self.commits))
        )


def require_prefix(name: str, key: str) -> None:
    """Raises UserError if no topic's name can begin with ``name``, the value of the profile key ``key``."""
    _require_legal(name, key, longest=_LONGEST_PREFIX)


def debezium_topic(prefix: str, database: str, table: str) -> str:
    """Returns the topic of a table's messages in Debezium's format. Debezium, too, replaces characters that Kafka does
    not allow, so two tables can share a topic.
    """
    return _NOT_IN_DEBEZIUM.sub("_", f"{prefix}.{database}.{table}")


def debezium_transactions(prefix: str) -> str:
    """Returns the topic of the messages about the begins and ends of transactions, in Debezium's format."""
    return f"{prefix}.transaction"


def debezium_heartbeats(prefix: str) -> str:
    """Returns the topic of the heartbeats of a leader, in Debezium's format."""
    return f"__debezium-heartbeat.{prefix}"


def is_debezium_topic(prefix: str, name: str) -> bool:
    """Whether ``name`` is a topic of messages in Debezium's format that belong to records: of a table, of transactions,
    or of changes of schemas, which has the name ``prefix``. False if there is no prefix.
    """
    return bool(prefix) and (name == prefix or name.startswith(f"{prefix}."))


def _same_in_metrics(one: str, other: str) -> bool:
    return one.replace(".", "_") == other.replace(".", "_")


def _require_legal(name: str, key: str, *, longest: int) -> None:
    if _LEGAL.fullmatch(name) is None or len(name) > longest or name in (".", ".."):
        raise UserError(
            f"{name!r} cannot be {'part of ' if key.endswith('prefix') else ''}a topic's name",
            code="CDC-PROFILE-TOPIC-NAME",
            where=f"profile key {key}",
            hint=f"letters, digits, '.', '_' and '-', at most {longest} of them",
        )
