"""Defines the formats of the messages in Kafka (profile key kafka.format), and the settings of Debezium's messages."""

from collections.abc import Collection
from dataclasses import dataclass, field

from cdc.config.topic_names import PER_TABLE, Topics, debezium_heartbeats, debezium_transactions, require_prefix
from cdc.errors import UserError

__all__ = ["CDC", "DEBEZIUM", "Debezium", "require_format", "require_mergeable", "require_other_topics"]

CDC, DEBEZIUM = "cdc", "debezium"  # the formats of kafka.format


def require_format(formats: Collection[str], *, transactions: bool) -> None:
    """Raises UserError for a list of formats that is unknown, or that ``transactions`` (kafka.transactions) excludes.

    Resuming, the consumer and the audit need the records, so their format can't be left out.
    """
    if sorted(formats) not in ([CDC], [CDC, DEBEZIUM]):
        raise UserError(
            f"{list(formats)!r} is no list of formats",
            code="CDC-PROFILE-FORMAT",
            where="profile key kafka.format",
            hint=f'["{CDC}"], or ["{CDC}", "{DEBEZIUM}"] for Debezium\'s messages beside the records',
        )
    if DEBEZIUM in formats and not transactions:
        raise UserError(
            "Debezium's messages commit with the records, in a Kafka transaction",
            code="CDC-PROFILE-FORMAT",
            where="profile key kafka.format",
            hint="leave kafka.transactions out, or debezium in kafka.format",
        )


def require_mergeable(formats: Collection[str], modes: "Debezium", *, dedupe_ms: int) -> None:
    """Raises UserError if the messages of a row are to be merged (producer.dedupe_ms), or merged messages are to have
    some of their columns only, and ``modes`` or the ``formats`` of kafka.format exclude that.
    """
    keys, reason = "", ""
    if dedupe_ms and DEBEZIUM not in formats:
        keys, reason = "producer.dedupe_ms and kafka.format", "only Debezium's messages are merged, no records"
    elif dedupe_ms and modes.provide_transaction_metadata:
        keys = "producer.dedupe_ms and debezium.provide_transaction_metadata"
        reason = "a merged message belongs to several transactions"
    elif modes.changed_columns_only and not dedupe_ms:
        keys = "debezium.changed_columns_only and producer.dedupe_ms"
        reason = "only where messages are merged, they may have some of their columns"
    elif modes.changed_columns_only and modes.schemas_enable:
        keys = "debezium.changed_columns_only and debezium.schemas_enable"
        reason = "a message with a schema has all columns"
    if keys:
        raise UserError(
            f"the settings exclude one another: {reason}",
            code="CDC-PROFILE-FORMAT",
            where=f"profile keys {keys}",
            hint="change one of the two (docs/debezium.md, Merged messages)",
        )


def require_other_topics(prefix: str, topics: Topics, *, more: Collection[str] = ()) -> None:
    """Raises UserError if a topic of Debezium's messages, ``<prefix>.<database>.<table>`` or one of ``more``, might
    have the name of one of the records' ``topics``: readers of records do not know Debezium's messages.

    Kafka refuses two topics whose names differ only in dots and underscores, so these count as equal.
    """
    require_prefix(prefix, "debezium.topic_prefix")
    debezium = _in_metrics(f"{prefix}.")
    named = [_in_metrics(name).removeprefix(debezium) for name in (topics.topic, topics.commits, topics.copies)
             if _in_metrics(name).startswith(debezium)]  # fmt: skip
    key = "kafka.topic" if any("_" in rest for rest in named) else ""
    if _in_metrics(topics.prefix).startswith(debezium):
        key = "kafka.prefix"
    for name in more:
        key = key or _key_of_same(name, topics)
    if key:
        raise UserError(
            f"a topic of Debezium's messages, {prefix}.<database>.<table>, might have the name of a topic of records",
            code="CDC-PROFILE-DEBEZIUM-TOPICS",
            where=f"profile keys debezium.topic_prefix and {key}",
            hint="set debezium.topic_prefix to a name that no topic of the records has or begins with; if it is left "
            "out, it is mysql_resource_name",
        )


def _key_of_same(name: str, topics: Topics) -> str:
    """Returns the profile key that might give a topic of records the ``name``; empty if none does."""
    if _in_metrics(name) in map(_in_metrics, (topics.topic, topics.commits, topics.copies)):
        return "kafka.topic"
    rest = name.removeprefix(topics.prefix)
    of_table = topics.layout == PER_TABLE and name.startswith(topics.prefix) and "_" in rest and "." not in rest
    return "kafka.prefix" if of_table or _in_metrics(name) == _in_metrics(topics.events) else ""


def _in_metrics(name: str) -> str:
    return name.replace(".", "_")


@dataclass(frozen=True, slots=True)
class Debezium:
    """The settings of Debezium's messages; each has the name of the setting in Debezium's MySQL connector, with ``_``
    for a dot; ``schemas_enable`` is the setting of Kafka Connect's JsonConverter. ``topic_prefix`` is the name of the
    leader there; empty means ``mysql_resource_name``. ``changed_columns_only`` is for merged messages, which Debezium
    does not have.
    """

    topic_prefix: str = ""
    decimal_handling_mode: str = field(default="precise", metadata={"choices": ("precise", "double", "string")})
    bigint_unsigned_handling_mode: str = field(default="long", metadata={"choices": ("long", "precise")})
    binary_handling_mode: str = field(
        default="bytes", metadata={"choices": ("bytes", "base64", "base64-url-safe", "hex")}
    )
    time_precision_mode: str = field(
        default="adaptive_time_microseconds", metadata={"choices": ("adaptive_time_microseconds", "connect")}
    )
    enable_time_adjuster: bool = True
    tombstones_on_delete: bool = True
    provide_transaction_metadata: bool = False
    schemas_enable: bool = False
    include_schema_changes: bool = False
    heartbeat_interval_ms: int = field(default=0, metadata={"range": (0, 86_400_000)})
    changed_columns_only: bool = False

    def topics_beside(self, prefix: str) -> tuple[str, ...]:
        """Returns the topics of messages that belong to no table, for the leader's name ``prefix``."""
        found = {
            debezium_transactions(prefix): self.provide_transaction_metadata,
            debezium_heartbeats(prefix): bool(self.heartbeat_interval_ms),
            prefix: self.include_schema_changes,
        }
        return tuple(name for name, has_messages in found.items() if has_messages)

    def __post_init__(self) -> None:
        """Raises UserError for a prefix that can't be part of a topic's name."""
        if self.topic_prefix:
            require_prefix(self.topic_prefix, "debezium.topic_prefix")
