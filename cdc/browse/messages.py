"""Reads messages of any topic unchanged; commits no offset and creates no topic."""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Self

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)

from cdc.errors import UserError
from cdc.kafka.errors import question_error
from cdc.kafka.partitions import backwards, begin_offsets, between, connected, end_offsets, time_offsets
from cdc.kafka.topics import known_topics
from cdc.model.position import Partition
from cdc.model.values import UNSEEN, visible

__all__ = [
    "FETCH",
    "NOTHING",
    "Found",
    "Shown",
    "Window",
    "answering",
    "as_hex",
    "as_json",
    "as_text",
    "newest",
    "window",
]

_HEX_WIDTH = 16
_FIRST_STEP, _STEP = 400, 4_000  # the number of offsets that one step reads, in all partitions together
_MOST_INDENTED = 20  # how many times longer indents may make a JSON text; they make a record about 4 times longer
FETCH = {"queued.max.messages.kbytes": 16_000, "fetch.queue.backoff.ms": 10}
"""Settings of librdkafka's consumer. By default it prefetches 64 MB, and then pauses for a second."""
NOTHING = "∅"
"""The text of a key or value that is null in Kafka."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of a topic. ``timestamp_ms`` is None if the message has no timestamp; ``timestamp_kind`` is
    ``"create"`` or ``"append"``. ``size`` is the length of the whole value: ``value`` may be only its beginning.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_kind: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    size: int

    @classmethod
    def of(cls, message: Message, *, value_bytes: int | None = None) -> Self:
        """Copies the message, with at most the first ``value_bytes`` of its value."""
        kind, timestamp = message.timestamp()
        value: Any = message.value()
        pairs: Any = message.headers() or ()
        headers = tuple((name, _bytes(content)) for name, content in pairs)
        return cls(
            message.topic() or "",
            message.partition() or 0,
            message.offset() or 0,
            None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
            "append" if kind == TIMESTAMP_LOG_APPEND_TIME else "create",
            _bytes(message.key()),
            value if value is None or value_bytes is None else value[:value_bytes],
            headers,
            len(value or b""),
        )


def _bytes(content: Any) -> bytes | None:
    return content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content


@dataclass(frozen=True, slots=True)
class Window:
    """Some messages of a partition in the order of their offsets, and ``begin`` and ``end`` of the partition.

    To get earlier messages, call ``window`` with ``until=before``; to get later messages, call it with
    ``offset=after``. ``before`` or ``after`` is None if there are no such messages now.
    """

    messages: tuple[Shown, ...]
    begin: int
    end: int
    before: int | None
    after: int | None


@contextmanager
def answering(properties: Mapping[str, Any], *, where: str) -> Iterator[None]:
    """Converts the Kafka client's errors in the block into UserErrors, whose place is ``where``."""
    try:
        yield
    except KafkaException as error:
        group = str(properties.get("group.id", ""))
        raise question_error(error.args[0], properties, where=where, group=group) from None


def window(
    properties: Mapping[str, Any],
    topic: str,
    partition: int,
    *,
    offset: int | None = None,
    until: int | None = None,
    since_ms: int | None = None,
    count: int = 50,
    committed: bool = True,
    value_bytes: int = 100_000,
) -> Window:
    """Reads at most ``count`` messages: either from ``offset`` on, or from the first message with a timestamp of at
    least ``since_ms`` on, or the last messages before ``until``, or the newest messages.

    Only the first ``value_bytes`` of a value are kept. With ``committed``, messages of open and aborted transactions
    are left out. Raises Disconnected, and UserError if there is no such topic or partition.
    """
    place = topic, partition
    with answering(properties, where=f"topic {topic}, partition {partition}"):
        _require(properties, topic, partition)
        begin = begin_offsets(properties, [place])[place]
        end = end_offsets(properties, [place], committed=committed)[place]
        found: list[Shown] = []
        if offset is None and since_ms is not None:
            offset = time_offsets(properties, [place], since_ms)[place]
        if offset is not None:
            low = high = max(begin, min(offset, end))
            if low < end:
                found = list(islice(_from(properties, place, (low, end), committed, value_bytes), count))
        else:
            high = end if until is None else max(begin, min(until, end))
            low = begin
            pick = partial(Shown.of, value_bytes=value_bytes)
            found = list(islice(backwards(properties, place, committed=committed, end=high, pick=pick), count))[::-1]
    if found:
        low, high = found[0].offset, found[-1].offset + 1
    return Window(tuple(found), begin, end, low if low > begin else None, high if high < end else None)


@dataclass(frozen=True, slots=True)
class Found:
    """Messages of several partitions, the newest first. ``ranges`` contains the first offset and the end of each
    partition. ``looked`` contains the offset back to which each partition was searched; ``newest`` with ``ends=looked``
    continues the search. ``is_whole`` is true if nothing is left to search.
    """

    messages: tuple[Shown, ...]
    ranges: dict[int, tuple[int, int]]
    looked: dict[int, int]
    is_whole: bool


def newest(
    properties: Mapping[str, Any],
    topic: str,
    partitions: Collection[int],
    *,
    text: str = "",
    since_ms: int | None = None,
    ends: Mapping[int, int] | None = None,
    count: int = 50,
    seconds: float = 3.0,
    committed: bool = True,
    value_bytes: int = 100_000,
) -> Found:
    """Reads ``partitions`` backwards, beginning before the offsets ``ends`` or at the newest messages. Returns the
    ``count`` newest messages whose key, value or headers contain ``text``, regardless of the case of ASCII letters;
    returns fewer if it reaches messages older than ``since_ms``, or after about ``seconds``.

    The messages of each partition stay in the order of their offsets, whatever their timestamps are. Raises
    Disconnected, and UserError if there is no such topic or partition.
    """
    places = [(topic, number) for number in sorted(partitions)]
    with answering(properties, where=f"topic {topic}"):
        _require(properties, topic, max(partitions))
        begins, highs = begin_offsets(properties, places), end_offsets(properties, places, committed=committed)
        lows = begins if since_ms is None else time_offsets(properties, places, since_ms)
        given = {(topic, number): end for number, end in (ends or {}).items()}
        reached = {place: max(lows[place], min(given.get(place, high), high)) for place, high in highs.items()}
        wanted = partial(_matching, text=text.encode().lower(), value_bytes=value_bytes)
        found, reached = _search(properties, reached, lows, wanted, count=count, seconds=seconds, committed=committed)
    taken, looked = _merged(found, reached, count)
    ranges = {place[1]: (begins[place], highs[place]) for place in places}
    return Found(taken, ranges, {place[1]: offset for place, offset in looked.items()}, looked == lows)


def _search(
    properties: Mapping[str, Any],
    reached: dict[Partition, int],
    lows: Mapping[Partition, int],
    wanted: Callable[[Message], Shown | None],
    *,
    count: int,
    seconds: float,
    committed: bool,
) -> tuple[dict[Partition, list[Shown]], dict[Partition, int]]:
    """Reads backwards from the offsets ``reached``; each step reads some messages of every partition. Returns the
    ``wanted`` messages of each partition, and the offsets back to which it has read.
    """
    found = {place: list[Shown]() for place in reached}
    give_up, step = time.monotonic() + seconds, _FIRST_STEP
    consumer = connected(FETCH | dict(properties), committed=committed)
    try:
        while not _is_settled(found, reached, lows, count) and time.monotonic() < give_up:
            left = {place: high for place, high in reached.items() if high > lows[place]}
            starts = {place: max(lows[place], high - max(1, step // len(left))) for place, high in left.items()}
            for place, read in _read(consumer, starts, left, wanted, str(properties.get("group.id", ""))).items():
                found[place][:0] = read
            reached, step = reached | starts, _STEP
    finally:
        consumer.close()
    return found, reached


def _matching(message: Message, *, text: bytes, value_bytes: int) -> Shown | None:
    if text:
        whole = Shown.of(message)
        parts = [
            whole.key,
            whole.value,
            *(part for name, content in whole.headers for part in (name.encode(), content)),
        ]
        if not any(text in part.lower() for part in parts if part is not None):
            return None
    return Shown.of(message, value_bytes=value_bytes)


def _read(
    consumer: Consumer,
    starts: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    wanted: Callable[[Message], Shown | None],
    group: str,
) -> dict[Partition, list[Shown]]:
    """Reads the offsets from ``starts`` to ``ends``, and keeps the ``wanted`` messages."""
    read = {place: list[Shown]() for place in starts}
    for message in between(consumer, starts, ends, group):
        shown = wanted(message)
        if shown is not None:
            read[shown.topic, shown.partition].append(shown)
    return read


def _is_settled(
    found: Mapping[Partition, list[Shown]], reached: Mapping[Partition, int], lows: Mapping[Partition, int], count: int
) -> bool:
    """Whether nothing is left to read, or ``found`` contains the ``count`` newest messages of all partitions. The
    latter is certain if, in each partition with messages left to read, the oldest message in ``found`` is not newer
    than any of the ``count`` messages, since the messages that are left come before it.
    """
    times = sorted((_time(each) for messages in found.values() for each in messages), reverse=True)
    left = [place for place, offset in reached.items() if offset > lows[place]]
    oldest = [_time(found[place][0]) if found[place] else None for place in left]
    return not left or (len(times) >= count and all(each is not None and each <= times[count - 1] for each in oldest))


def _merged(
    found: Mapping[Partition, list[Shown]], reached: Mapping[Partition, int], count: int
) -> tuple[tuple[Shown, ...], dict[Partition, int]]:
    """Takes the ``count`` newest of the messages in ``found``; from each partition, it takes the last message first.
    Returns them, and the offset in each partition before which the next search begins. That search reads the messages
    again that were found but not taken.
    """
    taken: list[Shown] = []
    rest = {place: list(messages) for place, messages in found.items()}
    while len(taken) < count and any(rest.values()):
        place = max((each for each in rest if rest[each]), key=lambda each: _time(rest[each][-1]))
        taken.append(rest[place].pop())
    left = {place: messages[-1].offset + 1 for place, messages in rest.items() if messages}
    return tuple(taken), {**reached, **left}


def _time(message: Shown) -> int:
    return message.timestamp_ms or 0


def _from(
    properties: Mapping[str, Any], place: Partition, offsets: tuple[int, int], committed: bool, value_bytes: int
) -> Iterator[Shown]:
    """Yields the messages between two offsets, the oldest first."""
    consumer = connected(FETCH | dict(properties), committed=committed)
    begin, end = offsets
    try:
        for message in between(consumer, {place: begin}, {place: end}, str(properties.get("group.id", ""))):
            yield Shown.of(message, value_bytes=value_bytes)
    finally:
        consumer.close()


def _require(properties: Mapping[str, Any], topic: str, partition: int) -> None:
    """Raises UserError if the brokers do not show this partition. librdkafka would repeat a request for the
    offsets of an unknown partition without end.
    """
    known = known_topics(properties, [topic])
    if topic not in known:
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    if partition not in known[topic].partitions:
        raise UserError(
            f"the topic has no partition {partition}",
            code="CDC-BROWSE-NO-PARTITION",
            where=f"topic {topic}",
            hint=f"it has {len(known[topic].partitions)}, numbered from 0",
        )


def as_text(data: bytes | None) -> str:
    """Decodes the bytes as UTF-8. Characters that can't be shown become visible, except line breaks and tabs."""
    if data is None:
        return NOTHING
    return visible(data.decode("utf-8", "backslashreplace"), keep="\n\t")


def as_hex(data: bytes | None) -> str:
    """Writes 16 bytes per line: their offset, their hex digits, and the printable ASCII characters."""
    if data is None:
        return NOTHING
    lines = []
    for at in range(0, len(data), _HEX_WIDTH):
        part = data[at : at + _HEX_WIDTH]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<47}  {shown}")
    return "\n".join(lines)


def as_json(data: bytes | None) -> str | None:
    """Writes the bytes as indented JSON. Characters that can't be shown are escaped as in JSON.

    Returns None if the bytes are not JSON, or if the indents would be most of the text: a megabyte of nested lists
    could become a gigabyte.
    """
    most = 10_000 + _MOST_INDENTED * len(data or b"")
    parts: list[str] = []
    try:
        for part in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(json.loads(data or b"")):
            parts.append(part)
            most -= len(part)
            if most < 0:
                return None
    except (ValueError, RecursionError):
        return None
    text = "".join(parts)
    return UNSEEN.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)
