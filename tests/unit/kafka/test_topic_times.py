"""Which time a record gets, by what its topic takes."""

import time

import pytest

from cdc.kafka.topics import ANY_TIME, TopicTimes

HOUR = 3_600_000
LIMITS = "message.timestamp.{}.max.ms"


@pytest.mark.parametrize(
    ("settings", "earliest", "latest"),
    [
        (ANY_TIME, None, None),
        ({LIMITS.format("after"): str(HOUR)}, None, HOUR),
        ({LIMITS.format("before"): str(HOUR)}, -HOUR, None),
        ({LIMITS.format("difference"): str(2 * HOUR)}, -2 * HOUR, 2 * HOUR),  # before Kafka 3.6
        (ANY_TIME | {LIMITS.format("difference"): str(HOUR)}, -HOUR, HOUR),  # Kafka 3.6 to 3.9 have all three
        ({"message.timestamp.type": "LogAppendTime", LIMITS.format("after"): "1"}, None, None),
        (None, None, HOUR),  # not known: we may not ask
    ],
)
def test_the_nearest_time(settings: dict[str, str] | None, earliest: int | None, latest: int | None) -> None:
    times = TopicTimes("s:9092")
    if settings is not None:
        times.learn("t", settings)
    now = int(time.time() * 1000)
    for hours in (-24 * 365, 0, 24 * 365):
        wanted = now + hours * HOUR
        got = times.stamp("t", wanted) - now
        limit = earliest if hours < 0 else latest if hours else None
        if limit is None:
            assert got == hours * HOUR
        else:
            assert limit * 0.8 <= got < limit or limit < got <= limit * 0.8
