"""When to commit to Kafka: at once while the leader has nothing more, in large transactions while it is ahead."""

import time

from cdc.config.profile import Producer as Limits
from cdc.producer.decode.changes import Change, Idle
from cdc.producer.progress import Progress
from cdc.producer.sink.kafka_sink import KafkaSink

__all__ = ["due", "rest"]

_OPEN_SECONDS = 10.0  # how long a Kafka transaction may stay open inside one leader transaction


def due(change: Change, sink: KafkaSink, progress: Progress, limits: Limits) -> bool:
    """Whether to commit: when the leader has nothing more, or a limit is reached at the end of a transaction.

    A leader transaction that alone reaches the limits is cut: what is out of it is counted in the commit log.
    """
    full, now = sink.records >= limits.commit_records or sink.is_full, time.monotonic()
    if not progress.between_transactions:
        return sink.records > 0 and (full or now - sink.begun_at > _OPEN_SECONDS)
    if type(change) is Idle:
        return sink.records > 0 or progress.is_stale(now)
    return full or (now - sink.begun_at) * 1000 > limits.commit_ms or progress.is_stale(now)


def rest(records: int) -> float:
    """For how many seconds to let events gather after a commit of so many records, with nothing more at hand.

    A broker still ends the last transaction for a moment after it has said that it is committed, and a client that
    begins the next one by then has to ask again, 20 ms later. Beyond that, the busier the leader, the larger the
    Kafka transactions that pay: their number costs, not their size.
    """
    return 0.002 + min(records * 20e-6, 0.05)
