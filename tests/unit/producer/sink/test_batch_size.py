"""The size of Kafka transactions over a slow link."""

from cdc.producer.sink.kafka_transactions import BatchSize


def test_it_shrinks_with_each_failure_and_waits_longer() -> None:
    batch, seen = BatchSize(16_000_000), []
    for _ in range(10):
        batch.failed()
        seen.append((batch.bytes, batch.patience))
    assert seen[:3] == [(8_000_000, 20.0), (4_000_000, 40.0), (2_000_000, 40.0)]
    assert seen[-1] == (65_536, 40.0)


def test_it_grows_again_while_commits_are_quick() -> None:
    batch = BatchSize(16_000_000)
    batch.failed()
    batch.failed()
    batch.committed(4_000_000, 5.0)
    assert (batch.bytes, batch.patience) == (4_000_000, 40.0)
    for _ in range(3):
        batch.committed(batch.bytes, 0.5)
    assert (batch.bytes, batch.patience) == (16_000_000, 10.0)


def test_a_quick_commit_of_little_says_nothing_of_the_link() -> None:
    """As that of the entry with which each session begins, so that it shrinks from one attempt to the next."""
    batch = BatchSize(16_000_000)
    batch.failed()
    batch.committed(500, 0.05)
    assert (batch.bytes, batch.patience) == (8_000_000, 20.0)


def test_a_slow_commit_makes_the_next_one_smaller() -> None:
    batch = BatchSize(16_000_000)
    batch.committed(16_000_000, 16.0)
    assert (batch.bytes, batch.patience) == (8_000_000, 10.0)


def test_a_small_limit_of_the_profile_stays() -> None:
    batch = BatchSize(1000)
    batch.failed()
    assert batch.bytes == 1000
