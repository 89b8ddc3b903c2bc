"""What a copy writes in, messages for Kafka out: each is a transaction of its own, which no GTID names."""

import json
from base64 import b64encode
from typing import NamedTuple

from cdc.model.position import Position
from cdc.producer.copy.chunk import Chunk, Creation
from cdc.producer.sink.record_parts import COPIED, COPYING, RECORD, Message, affects, encoded, json_text

__all__ = ["Place", "chunk_body", "copied_message", "creation_body"]

_NO_FOREIGN_KEY_CHECKS = 2  # as in the flags of a rows event


def chunk_body(chunk: Chunk) -> tuple[str, ...]:
    """The part of a chunk's record after its sequence, in pieces."""
    name, ends = "Copy", f'"after":{_key(chunk.after)},"upto":{_key(chunk.upto)}'
    if chunk.keys is not None:
        name, ends = "Repair", f'"keys":[{",".join(map(_key, chunk.keys))}]'
    if chunk.piece is not None:
        ends = f'"piece":{chunk.piece},{ends}'
    else:
        ends += f',"collations":{json.dumps(chunk.collations)}'
    head = f',"flags":{_NO_FOREIGN_KEY_CHECKS},"operation":{{"{name}":{{{ends},"rows":['
    return chunk.columns_json, head, ",".join(chunk.rows), "]}}"


def _key(bound: tuple[str, ...] | None) -> str:
    return "null" if bound is None else f'{{"cols":[{",".join(bound)}]}}'


def creation_body(creation: Creation, *, resource: str, ts_us: int) -> tuple[str, ...]:
    """The same of a statement, read on the leader ``resource`` at the time ``ts_us``, that creates what is copied."""
    exact = {} if creation.exact is None else {"Bytes": b64encode(creation.exact).decode("ascii")}
    query = json_text({"Query": creation.text} | exact)
    context = json_text(creation.context | {"timestamp_us": ts_us})
    return COPYING, f'"operation":{query},"context":{context},"affects":{affects(creation.effects, resource)}'


class Place(NamedTuple):
    """Where a copied record is in the stream: its sequence, the binlog's ``position`` there, and when it was read."""

    sequence: int
    position: Position
    ts_us: int


def copied_message(topic: str, uri: str, body: tuple[str, ...], place: Place, state: str) -> Message:
    """The record with ``body`` after its head; ``state`` says how far the copy is after it."""
    (sequence, position, ts_us), last = place, "true"
    head = RECORD % (uri, sequence, *position, f"copy:{sequence}", 0, last, ts_us)
    return Message(topic, uri.encode(), encoded((head, *body, "}")), ts_us // 1000, [(COPIED, state)])
