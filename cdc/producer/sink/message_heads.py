"""Reads of a message in Kafka what a recovery compares: its sequence, a header, the beginning of a record."""

import re
from contextlib import suppress

import orjson
from confluent_kafka import Message

from cdc.errors import PromiseError, UserError
from cdc.kafka.fragments import Fragment
from cdc.model.record import Record, Uri
from cdc.producer.sink.record_parts import HEAD_BYTES

__all__ = ["AFTER", "SHOWN", "head_of", "header_of", "sequence_of"]

# The headers of an event message: the newest sequence, and the position of the newest event, at the time of writing.
AFTER, SHOWN = "cdc_after", "cdc_shown"

_RECORD = re.compile(rb'\{"uri":("(?:[^"\\]|\\.)*"),"sequence":(\d{1,19}),')  # the beginning of ``record_parts.RECORD``


def header_of(message: Message, name: str) -> str | None:
    """Returns the text of the header ``name`` of ``message``; None if the message has no such header."""
    found = dict(message.headers() or []).get(name)
    return str(found, "utf-8") if isinstance(found, bytes) else None


def sequence_of(message: Message, resource: str) -> int:
    """Returns the sequence of the record in ``message``; of an event message the newest one before it.

    Raises PromiseError for a message that is not a record, UserError for a record of another leader than ``resource``.
    """
    after = header_of(message, AFTER)
    if after is not None:
        return int(after)
    where = f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"
    fragment = Fragment.of(message)
    if fragment is not None:
        uri, sequence = _uri_of_key(message, where), fragment.sequence
    else:
        uri, sequence = _named(message.value() or b"", where)
    if uri.resource != resource:
        raise UserError(
            f"the topic holds the records of another leader, {uri.resource!r}",
            code="CDC-TOPIC-OTHER-LEADER",
            where=where,
            hint="set kafka.prefix to tell the leaders' topics apart, and give the follower a fresh copy of the leader",
        )
    return sequence


def _named(value: bytes, where: str) -> tuple[Uri, int]:
    """Returns the URI and the sequence of a record. A start reads many records, and a chunk of a copy has thousands of
    rows, so the rows of a large record are not parsed.
    """
    if len(value) > HEAD_BYTES and (found := _RECORD.match(value[:HEAD_BYTES])):
        with suppress(ValueError):  # no URI: parsing the whole message raises the error
            return Uri.parse(orjson.loads(found[1])), int(found[2])
    record = Record.parse(value, where=where)
    return record.uri, record.sequence


def _uri_of_key(message: Message, where: str) -> Uri:
    try:
        return Uri.parse(str(message.key() or b"", "utf-8"))
    except ValueError as error:
        raise PromiseError(
            f"not a fragment of a record: its key is {error}", code="CDC-RECORD-FRAGMENTS", where=where
        ) from None


def head_of(message: Message) -> Message:
    """Returns the message; of a fragment, only the beginning of a record is kept, to save memory: many messages are
    read at once.
    """
    if fragment := Fragment.of(message):
        message.set_value(b"" if fragment.number else (message.value() or b"")[:HEAD_BYTES])
    return message
