"""An entry of the commit log, JSON, as the producer writes it and as readers of a leader's topics need it.

Each entry names the ``version`` of its format; entries from before there were versions have none. The version goes up
when a reader that does not know it would misread the entry.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, Self

from cdc.errors import PromiseError, UserError
from cdc.model.partition import Partition, partition_of
from cdc.model.position import Position

__all__ = ["VERSION", "Commits", "Entry", "Partial", "PreparedXa"]

VERSION = 1


class PreparedXa(NamedTuple):
    """Where a prepared transaction is in the leader's log: its GTID, None without GTIDs, and its first event; and what
    its rows were made under (``Begin.sql_mode``)."""

    gtid: str | None
    file: str
    offset: int
    sql_mode: str | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """``rows`` rows of a leader ``transaction`` are out, in so many ``records``; None: counted by a version of before.

    ``newest`` is the last row's ``content_sum``. A server that logged the transaction with other rows, such as one that
    logs cascades, is told by it.
    """

    transaction: str
    records: int
    rows: int | None
    newest: int = 0


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
    prepared: dict[str, PreparedXa] = field(default_factory=dict)
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
        return [partition_of(name) for name in self.counts]

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Raises PromiseError where ``text`` is not an entry, UserError where it has what only a newer version knows.

        ``where`` is its topic and offset.
        """
        body = _body(text, where=where)
        body.pop("version", None)
        if isinstance(partial := body.get("partial"), dict) and partial.pop("cut", None) is not None:
            partial["rows"] = None  # an entry of before counts records, and what says how they were cut
        unknown = _unknown(cls, body) + (_unknown(Partial, body["partial"]) if body.get("partial") else [])
        body = {key: value for key, value in body.items() if key not in unknown}
        try:
            body["position"] = Position(**body["position"])
            if body["partial"] and not unknown:
                body["partial"] = Partial(**body["partial"])
            body["prepared"] = {xid: PreparedXa(*place) for xid, place in body.get("prepared", {}).items()}
            if "shown" in body:
                body["shown"] = Position(**body["shown"])
            entry = cls(**body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_entry(error, text, where=where) from None
        if unknown:
            # To go on without them, and to leave them out of the next entry, may lose what they stand for.
            raise _newer(f"it has {', '.join(map(repr, unknown))}", where=where)
        return entry


def _unknown(kind: type[Entry] | type[Partial], body: object) -> list[str]:
    """Which fields of ``body`` ``kind`` does not have."""
    known = {each.name for each in fields(kind)}
    return [key for key in body if key not in known] if isinstance(body, dict) else []


@dataclass(frozen=True, slots=True)
class Commits:
    """Every sequence below the next is out, in these partitions."""

    next_sequence: int
    partitions: tuple[Partition, ...]

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Read an entry of the commit log. Raises PromiseError where ``text`` is none, UserError for a newer version's.

        A field that is not known is passed over: what readers must know of raises the version.
        """
        body = _body(text, where=where)
        try:
            return cls(int(body["next_sequence"]), tuple(sorted(partition_of(name) for name in body["counts"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_entry(error, text, where=where) from None


def _body(text: bytes, *, where: str) -> dict[str, Any]:
    """The JSON of an entry, of a version that is known; ``where`` is its topic and offset.

    Raises UserError for one of a newer version, PromiseError where ``text`` is no JSON object.
    """
    try:
        body: dict[str, Any] = json.loads(text)
        version = int(body.get("version", 0))
    except (ValueError, TypeError, AttributeError) as error:
        raise _no_entry(error, text, where=where) from None
    if version > VERSION:
        raise _newer(f"it is of version {version}, this cdc knows those up to {VERSION}", where=where)
    return body


def _newer(what: str, *, where: str) -> UserError:
    """The error for an entry that only a newer version of ``cdc`` understands; ``what`` shows that."""
    return UserError(
        f"this entry of the commit log was written by a newer cdc: {what}",
        where=where,
        hint="upgrade this cdc to the version that wrote it, or a later one",
    )


def _no_entry(error: Exception, text: bytes, *, where: str) -> PromiseError:
    """The error for what is no entry at all."""
    return PromiseError(
        f"not an entry of the commit log ({error}): {text[:80]!r}",
        where=where,
        hint="something else writes to this topic; start over with a new one",
    )
