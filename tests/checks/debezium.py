"""Compares messages in Debezium's format with Debezium's own, topic by topic and field by field."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import error as StructError
from struct import pack
from typing import Any

from confluent_kafka import Message

from cdc.kafka.partitions import backwards, end_offsets
from cdc.sandbox.server.kafka import Kafka
from tests.harness.wait import LIMIT_SECONDS

__all__ = [
    "Comparison",
    "DebeziumTopicMessage",
    "debezium_messages",
    "schema_changes",
    "transaction_messages",
    "uncounted",
]

_HEADERS = ("__debezium.newkey", "__debezium.oldkey")
# Types that only the statement that created the table shows.
_BOOLS = (".b1",)
_DIGITS = (".f73",)
_OTHER_TYPES = {("cdc_types.t_float", "r"), ("cdc_types.t_mixcs", "g")}
# Values that Debezium decodes otherwise than the server.
_OTHER_VALUES = {
    ("cdc_types.t_date_inv", "d"), ("cdc_types.t_date_inv", "dt"), ("cdc_types.t_year", "y"),
    ("cdc_types.t_enum", "e_q"),
}  # fmt: skip
# Columns with defaults, for which Kafka Connect's converter takes NULL by its own default; another one is altered.
_DEFAULTS, _NULLS = "extra.defaults", (".a", ".c")
# Messages about statements: definitions that are not certain, statements that Debezium can't parse, the server's types
# and defaults.
_DDL = re.compile(r" (?:changes|table|source\.table|column .* \w+)$")
_UNCERTAIN = re.compile(
    r"CREATE TABLE defaults|\"t_set\"|\"t_enum\"|t_myisam|t_memory|\"(?:Tbl|select)\" table|\"rentals\""
)
_UNPARSED = re.compile("t_ascii_members|t_geo_str")
_TYPED = {"b1", "zb", "f24", "f53", "r", "g"}
_FORMS = {("dn", "0.000", "0"), ("ti6", "10:11:12.500000", "10:11:12.5"), ("db", "10000000000", "1e10"),
          ("d", "1.500", "1.5")}  # fmt: skip
_BROKEN_TIME = re.compile(r"\d:\d*-\d")
_NEXT_DIGIT = 1e-7
_OF_PROCESSING = ("ts_ms", "ts_us", "ts_ns")  # when a program has dealt with the change
_MOMENTS_OF_SNAPSHOT = ("ts_ms", "ts_us", "ts_ns", "snapshot", "file", "pos")


@dataclass(frozen=True)
class DebeziumTopicMessage:
    """A message with what is compared of its headers, and the schemas of its key and value if it has any."""

    topic: str
    key: Any
    value: Any
    headers: Mapping[str, Any]
    schemas: tuple[Any, Any] = (None, None)


def debezium_messages(kafka: Kafka, *, prefix: str) -> dict[str, list[DebeziumTopicMessage]]:
    """All committed messages of the tables' topics behind ``prefix``, by the rest of the topic's name, in order."""
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    topics = [name for name in kafka.admin().list_topics(timeout=LIMIT_SECONDS).topics if name.startswith(f"{prefix}.")]
    topics = [name for name in topics if name not in (f"{prefix}.history", f"{prefix}.transaction")]
    return {name[len(prefix) + 1 :]: _messages(properties, name) for name in topics}


def _messages(properties: dict[str, str], topic: str) -> list[DebeziumTopicMessage]:
    if not end_offsets(properties, [(topic, 0)])[topic, 0]:
        return []
    return [*reversed([*backwards(properties, (topic, 0), pick=_message)])]


def transaction_messages(kafka: Kafka, *, prefix: str) -> list[DebeziumTopicMessage]:
    """All committed messages about the begins and ends of transactions behind ``prefix``, in order. The tables in each
    are sorted by name: Debezium has them in the order of a hash.
    """
    found = _messages({"bootstrap.servers": kafka.bootstrap_servers}, f"{prefix}.transaction")
    for each in found:
        each.value["data_collections"] = each.value["data_collections"] and sorted(
            each.value["data_collections"], key=lambda counted: str(counted["data_collection"])
        )
    return found


def schema_changes(kafka: Kafka, *, prefix: str) -> list[DebeziumTopicMessage]:
    """All committed messages about changes of schemas behind ``prefix``, in order."""
    return _messages({"bootstrap.servers": kafka.bootstrap_servers}, prefix)


def uncounted(messages: Mapping[str, list[DebeziumTopicMessage]], about: list[DebeziumTopicMessage]) -> list[str]:
    """What differs between the ``messages`` of rows and what the messages ``about`` transactions say of them."""
    blocks: dict[str, list[int]] = {}
    tables: dict[str, Counter[str]] = {}
    for topic, found in messages.items():
        for each in found:
            if each.value is not None and (block := each.value["transaction"]) is not None:
                blocks.setdefault(block["id"], []).append(block["total_order"])
                tables.setdefault(block["id"], Counter())[topic] += 1
    problems = [f"{id_}: {sorted(orders)}" for id_, orders in blocks.items() if sorted(orders) != [
        *range(1, len(orders) + 1)]]  # fmt: skip
    said: dict[str, list[Any]] = {}
    for each in about:
        counts = each.value["data_collections"]
        said.setdefault(each.value["id"], []).append(
            (each.value["status"], counts and {one["data_collection"]: one["event_count"] for one in counts})
        )
    wanted = {id_: [("BEGIN", None), ("END", dict(counts))] for id_, counts in tables.items()}
    return problems + [f"{id_}: {said.get(id_)} instead of {wanted.get(id_)}" for id_ in said.keys() | wanted.keys()
                       if said.get(id_) != wanted.get(id_)]  # fmt: skip


def _message(message: Message) -> DebeziumTopicMessage:
    headers = {name: _parsed(value) for name, value in message.headers() or [] if name in _HEADERS}
    (of_key, key), (of_value, value) = (_in_schema(_parsed(text)) for text in (message.key(), message.value()))
    return DebeziumTopicMessage(message.topic() or "", key, value, headers, (of_key, of_value))


def _in_schema(body: Any) -> tuple[Any, Any]:
    """The schema and the payload of a key or a value; a message without schemas is the payload."""
    if isinstance(body, dict) and body.keys() == {"schema", "payload"}:
        return body["schema"], body["payload"]
    return None, body


def _parsed(text: Any) -> Any:
    if not text:
        return text
    return json.loads(text)


@dataclass
class Comparison:
    """Counts equal fields, known differences by their names, and quotes the others."""

    messages: int = 0
    equal: int = 0
    known: Counter[str] = field(default_factory=Counter)
    others: list[str] = field(default_factory=list)
    _schemas: set[tuple[str, str, str]] = field(default_factory=set)

    def compare(
        self, ours: Mapping[str, list[DebeziumTopicMessage]], theirs: Mapping[str, list[DebeziumTopicMessage]]
    ) -> None:
        """Compares all topics of ``theirs``; messages of snapshots are compared in any order of the rows."""
        for topic, expected in sorted(theirs.items()):
            got = ours.get(topic, [])
            if len(got) != len(expected):
                self.others.append(f"{topic}: {len(got)} messages instead of {len(expected)}")
                continue
            for number, (mine, other) in enumerate(zip(got, expected, strict=True)):
                self.messages += 1
                self._message(f"{topic}[{number}]", mine, other)

    def compare_transactions(self, ours: list[DebeziumTopicMessage], theirs: list[DebeziumTopicMessage]) -> None:
        """Compares the messages about transactions. Those of which Debezium counts no message are left out: of a table
        whose definition it can't parse, or of none at all.
        """
        empty = {each.value["id"] for each in theirs if each.value["event_count"] == 0}
        ours, expected = ([each for each in side if each.value["id"] not in empty] for side in (ours, theirs))
        self._field("transactions", len(ours), len(expected))
        for number, (mine, other) in enumerate(zip(ours, expected, strict=False)):
            self.messages += 1
            for name in ("key", "value", "schemas"):
                self._field(f"transaction[{number}] {name}", getattr(mine, name), getattr(other, name))

    def compare_schema_changes(
        self, ours: list[DebeziumTopicMessage], theirs: list[DebeziumTopicMessage], *, where: str
    ) -> None:
        """Compares the messages about changes of schemas."""
        if len(ours) != len(theirs):
            texts = [[each.value["ddl"][:60] for each in side] for side in (ours, theirs)]
            self.others.append(f"{where}: {len(ours)} messages instead of {len(theirs)}: {texts}")
            return
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            self.messages += 1
            place = f"{where}[{number}] {other.value['ddl'][:40]!r}"
            self._field(f"{place} key", mine.key, other.key)
            self._schema(f"{place} schema of key", mine.schemas[0], other.schemas[0])
            self._schema(f"{place} schema of value", mine.schemas[1], other.schemas[1])
            got, expected = mine.value, other.value
            for name in ("databaseName", "schemaName", "ddl"):
                self._field(f"{place} {name}", got[name], expected[name])
            for name, value in expected["source"].items():
                if name != "name" and not (expected["source"]["snapshot"] == "true" and name in _MOMENTS_OF_SNAPSHOT):
                    # Debezium has several tables in the order of a hash.
                    mine, other_value = (
                        sorted(each.split(",")) if name == "table" and each else each
                        for each in (got["source"][name], value)
                    )
                    self._field(f"{place} source.{name}", mine, other_value)
            self._field(f"{place} changes", _kinds(got), _kinds(expected))
            for change, wanted in zip(got["tableChanges"], expected["tableChanges"], strict=False):
                self._table(f"{place} {wanted['id']}", change["table"], wanted["table"])

    def _table(self, where: str, mine: Any, other: Any) -> None:
        if mine is None or other is None:
            self._field(f"{where} table", mine, other)
            return
        for name in ("defaultCharsetName", "primaryKeyColumnNames", "comment"):
            self._field(f"{where} {name}", mine[name], other[name])
        columns = {each["name"]: each for each in mine["columns"]}
        self._field(f"{where} columns", list(columns), [each["name"] for each in other["columns"]])
        for each in other["columns"]:
            for name, value in each.items():
                self._field(f"{where} column {each['name']} {name}", columns.get(each["name"], {}).get(name), value)

    def _message(self, where: str, mine: DebeziumTopicMessage, other: DebeziumTopicMessage) -> None:
        for name, got, expected in zip(("key", "value"), mine.schemas, other.schemas, strict=True):
            pair = where.partition("[")[0], json.dumps(got), json.dumps(expected)
            if pair not in self._schemas:  # all messages of a version of a table have the same
                self._schemas.add(pair)
                self._schema(f"{where} schema of {name}", got, expected)
        self._field(f"{where} key", mine.key, other.key)
        self._field(f"{where} headers", mine.headers, other.headers)
        if mine.value is None or other.value is None:
            self._field(f"{where} value", mine.value, other.value)
            return
        self._field(f"{where} fields", list(mine.value), list(other.value))
        is_snapshot = other.value["op"] == "r"
        for name, expected in other.value.items():
            if name in _OF_PROCESSING:
                continue
            got = mine.value.get(name)
            if name not in ("before", "after", "source") or got is None or expected is None:
                self._field(f"{where} {name}", got, expected)
                continue
            self._field(f"{where} {name} fields", list(got), list(expected))
            for column, value in expected.items():
                if (name, column) == ("source", "name"):
                    continue  # two programs on one leader need two names
                if not (is_snapshot and name == "source" and column in _MOMENTS_OF_SNAPSHOT):
                    self._field(f"{where} {name}.{column}", got.get(column), value)

    def _schema(self, where: str, mine: Any, other: Any) -> None:
        """Compares two schemas, or parts of them, field by field."""
        if not (isinstance(mine, dict) and isinstance(other, dict)):
            self._field(where, mine, other)
            return
        self._field(f"{where} members", list(mine), list(other))
        fields = {each["field"]: each for each in mine.get("fields", ())}
        for name, value in other.items():
            if name == "fields":
                self._field(f"{where} fields", list(fields), [each["field"] for each in value])
                for each in value:
                    self._schema(f"{where}.{each['field']}", fields.get(each["field"]), each)
            elif name == "name" and isinstance(value, str):
                self._field(f"{where} {name}", _without_prefix(mine.get(name)), _without_prefix(value))
            else:
                self._field(f"{where} {name}", mine.get(name), value)

    def _field(self, where: str, mine: Any, other: Any) -> None:
        if (mine == other and type(mine) is type(other)) or _are_one_float(mine, other):
            self.equal += 1
        elif (name := _known(where, mine, other)) is not None:
            self.known[name] += 1
        else:
            self.others.append(f"{where}: {mine!r:.200} instead of {other!r:.200}")


def _kinds(value: Any) -> list[tuple[str, str]]:
    return [(each["type"], each["id"]) for each in value["tableChanges"]]


def _without_prefix(name: Any) -> Any:
    """The name of a schema without the topics' prefix: two programs on one leader need two."""
    return name if not isinstance(name, str) or name.startswith(("io.", "org.")) else name.partition(".")[2]


def _known(where: str, mine: Any, other: Any) -> str | None:
    """The name of a documented difference (docs/debezium.md), each of which is seen by this test."""
    topic, _, path = where.partition("[")
    if path.endswith(" source.row") and mine == 0:
        return "rows"
    if _DDL.search(path):
        return _known_in_ddl(path, mine, other)
    if " schema of " in path:
        return _known_in_schema(topic, path)
    if topic == _DEFAULTS and mine is None and path.endswith(_NULLS):
        return "nulls"
    if where.endswith(_BOOLS) and isinstance(mine, int) and mine == other:
        return "types"
    if topic == "cdc_types.t_float" and where.endswith(_DIGITS) and _is_float(mine, other):
        return "types"
    if (topic, path.rpartition(".")[2]) in _OTHER_TYPES:
        return "types"
    if topic.startswith("cdc_types.t_cs_") and isinstance(mine, str) and isinstance(other, str):
        return "values"
    if (topic, path.rpartition(".")[2]) in _OTHER_VALUES:
        return "values"
    if isinstance(other, str) and _BROKEN_TIME.search(other):
        return "values"
    return "snapshots" if isinstance(mine, str) and other == _with_blanks(mine) else None


def _known_in_ddl(path: str, mine: Any, other: Any) -> str | None:
    """The name of a documented difference between the definitions of tables, or the changes of a statement."""
    if mine is None and path.endswith(" table") and (_UNCERTAIN.search(path) or not path.isascii()):
        return "uncertain"
    if _UNPARSED.search(path) and path.endswith((" changes", " source.table")):
        return "values"
    name, _, member = path.rpartition(" column ")[2].rpartition(" ")
    if member == "defaultValueExpression":
        return "defaults" if (name, mine, other) in _FORMS else None
    return "types" if name in _TYPED else None


def _known_in_schema(topic: str, path: str) -> str | None:
    """The name of a documented difference between the schemas of a column."""
    columns, _, member = path.rpartition(" ")
    column = columns.rpartition(".")[2]
    if member == "type" and (f".{column}" in (*_BOOLS, *_DIGITS) or (topic, column) in _OTHER_TYPES):
        return "types"
    if member == "parameters" and (topic, column) in _OTHER_VALUES:
        return "values"
    return "defaults" if (topic, column, member) == (_DEFAULTS, "a", "default") else None


def _with_blanks(text: Any) -> str | None:
    """A JSON document as the server shows it."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (TypeError, ValueError):
        return None


def _are_one_float(mine: Any, other: Any) -> bool:
    """Whether both are the same number of 24 bits: Java before 19 writes some with a digit too many."""
    numbers = isinstance(mine, float) and isinstance(other, float)
    return numbers and abs(mine - other) <= _NEXT_DIGIT * abs(other) and _is_float(mine, other)


def _is_float(mine: Any, other: Any) -> bool:
    try:
        return pack("<f", mine) == pack("<f", other)
    except (StructError, OverflowError):
        return False
