"""A follower's status as JSON for programs."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from cdc.consumer.state.status import Status, lag

__all__ = ["as_json"]


def as_json(status: Status, *, follower: str, resource: str, following: int | None) -> str:
    """One JSON object: the fields of ``Status`` with ``follower``, ``resource`` and ``lag``; times in ISO 8601, UTC.

    ``following`` is as for ``lag``, whose figures are null where they are not known.
    """
    body = {"follower": follower, "resource": resource} | asdict(status)
    records, seconds = lag(status.applied, following) if status.applied else (None, None)
    body["lag"] = {"records": records, "seconds": seconds}
    if status.applied:
        places = sorted(status.applied.offsets.items())
        body["applied"]["offsets"] = [
            {"topic": place.topic, "partition": place.number, "next": offset} for place, offset in places
        ]
    return json.dumps(body, default=_time, ensure_ascii=False)


def _time(value: Any) -> str:
    """MySQL's DATETIME columns hold UTC and do not say so."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    raise TypeError(f"not a value of a status: {value!r}")
