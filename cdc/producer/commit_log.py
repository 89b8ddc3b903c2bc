"""The commit log: a compacted topic beside the records' topic in which the producer commits its position with them."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from cdc import topic_tail
from cdc.commits import VERSION, entry_body, newer, no_entry
from cdc.errors import UserError
from cdc.position import Position
from cdc.producer.partial import Partial
from cdc.producer.xa import Place
from cdc.topic_tail import Partition

__all__ = ["Entry", "entries"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is out: everything before ``position`` (and in ``gtid_set``), which is every sequence below the next.

    ``counts`` are the records per ``topic/partition``; ``instance`` names the producer process that wrote the entry.
    ``gtids_complete``: the set holds all that came before, so that it alone can say where to go on. ``prepared`` are
    the XA transactions by xid that wait for their end. ``last`` is the newest sequence in each ``topic/partition``;
    left out in layout "single", where the one partition has them all. ``shown`` is the newest of the binlog's other
    events that was shown. What is empty of these three is left out of the JSON. ``filters`` are those under which
    what is out was read, as ``Filters.listed`` says them; None in entries of before.
    """

    next_sequence: int
    position: Position
    gtid_set: str
    server_uuid: str
    partial: Partial | None = None
    counts: dict[str, int] = field(default_factory=dict)
    instance: str = ""
    gtids_complete: bool = False
    prepared: dict[str, Place] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    shown: Position | None = None
    filters: dict[str, list[str]] | None = None

    def to_json(self) -> bytes:
        shown = self.shown and self.shown._asdict()
        body = asdict(self) | {"position": self.position._asdict(), "shown": shown}
        body = {key: value for key, value in body.items() if value or key not in ("prepared", "last", "shown")}
        if self.filters is None:
            del body["filters"]
        body["version"] = VERSION
        return json.dumps(body, separators=(",", ":")).encode()

    @property
    def partitions(self) -> list[Partition]:
        """Where records are, or may be next."""
        return [(topic, int(number)) for topic, _, number in (name.rpartition("/") for name in self.counts)]

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Raises PromiseError where ``text`` is not an entry, UserError where it has what only a newer version knows.

        ``where`` is its topic and offset.
        """
        body = entry_body(text, where=where)
        body.pop("version", None)
        if isinstance(partial := body.get("partial"), dict) and partial.pop("cut", None) is not None:
            partial["rows"] = None  # an entry of before counts records, and what says how they were cut
        unknown = _unknown(cls, body) + (_unknown(Partial, body["partial"]) if body.get("partial") else [])
        body = {key: value for key, value in body.items() if key not in unknown}
        try:
            body["position"] = Position(**body["position"])
            if body["partial"] and not unknown:
                body["partial"] = Partial(**body["partial"])
            body["prepared"] = {xid: Place(*place) for xid, place in body.get("prepared", {}).items()}
            if "shown" in body:
                body["shown"] = Position(**body["shown"])
            entry = cls(**body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise no_entry(error, text, where=where) from None
        if unknown:
            # To go on without them, and to leave them out of the next entry, may lose what they stand for.
            raise newer(f"it has {', '.join(map(repr, unknown))}", where=where)
        return entry


def _unknown(kind: type[Entry] | type[Partial], body: object) -> list[str]:
    """Which fields of ``body`` ``kind`` does not have."""
    known = {each.name for each in fields(kind)}
    return [key for key in body if key not in known] if isinstance(body, dict) else []


def entries(properties: dict[str, Any], *, topic: str, resource: str, committed: bool = True) -> Iterator[Entry]:
    """The entries in ``topic``, newest first. ``properties`` are librdkafka's.

    Raises UserError where entries of another leader or of a newer version are there, Disconnected where the brokers do
    not answer.
    """
    for message in topic_tail.backwards(properties, (topic, 0), committed=committed):
        if not message.value():
            continue  # aborted, to end a transaction that hung (module settlement)
        key = str(message.key() or b"", "utf-8", "replace")
        if key != resource:
            raise UserError(
                f"the topic holds the records of another leader, {key!r}",
                where=f"topic {topic}",
                hint="set mysql_resource_name to that name, or kafka.topic to a topic of its own",
            )
        yield Entry.parse(message.value() or b"", where=f"topic {topic}, offset {message.offset()}")
