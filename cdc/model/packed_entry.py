"""Packs a large entry of the commit log into a fraction of its bytes, and unpacks it.

Kafka takes messages of up to 1 MB by default, and an entry is written with each commit. A GTID set of 100 000 intervals
has 1 MB, and so have the counts of 10 000 partitions. A packed entry keeps ``version`` and ``next_sequence``, which the
audit reads in SQL; all else is JSON, compressed, in base64. There the numbers of the GTID set are distances from the
one before (``uuid:5-7:12`` is ``uuid:5+2:5``), which compress to a quarter of what the numbers do, and each partition
is named once, with its count and its newest sequence.
"""

import json
import zlib
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Any

__all__ = ["PACKED", "distances", "numbers", "packed", "unpacked"]

PACKED = "packed"
_KEPT = ("version", "next_sequence")
_LEVEL = 1  # of zlib; level 6 takes five times as long for a fifth less


def packed(body: dict[str, Any]) -> dict[str, Any]:
    """The packed form of the entry ``body``, which has a version."""
    rest = {key: value for key, value in body.items() if key not in (*_KEPT, "gtid_set", "counts", "last")}
    counts, last = body["counts"], body.get("last", {})
    rest["partitions"] = {name: (counts.get(name), last.get(name)) for name in counts | last}
    rest["gtid_distances"] = distances(body["gtid_set"])
    text = zlib.compress(json.dumps(rest, separators=(",", ":")).encode(), _LEVEL)
    return {key: body[key] for key in _KEPT} | {PACKED: b64encode(text).decode("ascii")}


def unpacked(body: dict[str, Any], *, gtids: bool) -> dict[str, Any]:
    """The entry of which ``body`` is the packed form; its GTID set, which takes most of the time, where ``gtids``.

    Raises ValueError, LookupError, AttributeError or TypeError for anything else.
    """
    try:
        rest: dict[str, Any] = json.loads(zlib.decompress(b64decode(body[PACKED], validate=True)))
    except zlib.error as error:
        raise ValueError(str(error)) from None
    set_ = rest.pop("gtid_distances")
    found = {"gtid_set": numbers(set_)} if gtids else {}
    both = rest.pop("partitions").items()
    counts, last = ({name: pair[at] for name, pair in both if pair[at] is not None} for at in (0, 1))
    return {key: body[key] for key in _KEPT} | rest | found | {"counts": counts, "last": last}


def distances(gtid_set: str) -> str:
    """The text of a GTID set, its numbers as distances."""
    return ",".join(map(_distances, gtid_set.split(",")))


def numbers(text: str) -> str:
    """The GTID set of which ``text`` are the distances."""
    return ",".join(map(_numbers, text.split(",")))


# Most sources of a large set are the same from one commit to the next.
@lru_cache(maxsize=16)
def _distances(source: str) -> str:
    name, *parts = source.split(":")
    written, last = [name], 0
    for part in parts:
        low, _, high = part.partition("-")
        if not low.isdigit():
            written.append(part)  # a tag
            continue
        number = int(low)
        written.append(f"{number - last}+{int(high) - number}" if high else f"{number - last}")
        last = int(high or low)
    return ":".join(written)


def _numbers(source: str) -> str:
    name, *parts = source.split(":")
    written, last = [name], 0
    for part in parts:
        if not part[0].isdigit():
            written.append(part)  # a tag
            continue
        distance, _, more = part.partition("+")
        low = last + int(distance)
        last = low + int(more or 0)
        written.append(f"{low}-{last}" if more else f"{low}")
    return ":".join(written)
