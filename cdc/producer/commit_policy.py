"""Decides when to commit to Kafka: at once while the leader has no more, in large transactions while it is ahead."""

import time

from cdc.config.profile import Producer as Limits
from cdc.producer.decode.changes import Change, Idle
from cdc.producer.progress import Progress
from cdc.producer.sink.kafka_sink import KafkaSink

__all__ = ["due", "pause_seconds"]

_MAX_OPEN_SECONDS = 10.0  # how long a Kafka transaction may stay open inside one leader transaction
_BROKER_SECONDS = 0.002
_SECONDS_PER_RECORD = 20e-6
_MAX_GATHER_SECONDS = 0.05


def due(change: Change, sink: KafkaSink, progress: Progress, limits: Limits) -> bool:
    """Whether to commit after ``change``: the leader has no more, or a limit is reached at the end of a transaction.

    A leader transaction that alone reaches the limits is split; the commit log counts what of it is committed.
    """
    full, now = sink.records >= limits.commit_records or sink.is_full, time.monotonic()
    if not progress.between_transactions:
        return sink.records > 0 and (full or now - sink.begun_at > _MAX_OPEN_SECONDS)
    if type(change) is Idle:
        return sink.records > 0 or progress.is_stale(now)
    return full or (now - sink.begun_at) * 1000 > limits.commit_ms or progress.is_stale(now)


def pause_seconds(records: int) -> float:
    """Seconds to pause after committing ``records`` while the leader has no more, so that events gather.

    A broker is still busy with the end of a transaction for a moment after it has reported the commit; a client that
    begins the next one in that time must ask again, 20 ms later. Beyond that moment, a busy leader gets larger Kafka
    transactions: their number costs, not their size.
    """
    return _BROKER_SECONDS + min(records * _SECONDS_PER_RECORD, _MAX_GATHER_SECONDS)
