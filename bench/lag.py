"""Measures how long after its leader's commit a follower shows a change, beside MySQL's own replica."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from load import (
    CHECKPOINT,
    GTIDS,
    IDLE_SECONDS,
    RATE,
    STEADY_SECONDS,
    WARM_UP_SECONDS,
    percentiles,
    seen,
    single_writes,
    steady_load,
)
from measure import profile, run_program, running
from replica import NativeReplica

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql

__all__ = ["measure_lag"]


def measure_lag(folder: Path, *, fill: Callable[[MySql], None]) -> None:
    """Writes on the leader with both programs running, and reads the follower's checkpoint meanwhile; then does the
    same without Kafka transactions, and with MySQL's own replica and its GTIDs.
    """
    leader, follower, third, plain = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2, 3, 4))
    kafka = Kafka(folder / "kafka").start()
    fill(leader)
    found: list[Written] = []
    source = _through(folder, (leader, follower), kafka, found)
    _through(folder, (leader, plain), kafka, found, transactions=False)
    replica = NativeReplica(leader, third)
    replica.receive()
    replica.apply()
    replica.follow()
    found += written("native replica", leader, third, GTIDS)
    run_program("cdc-producer", source)  # the topic has the commit times on the leader
    for title, counted_from, until, times, applied in found:
        print(f"{title}: {percentiles(list(ages(commits(kafka, applied), times, counted_from, until)))}", flush=True)
    for each in (leader, follower, third, plain, kafka):
        each.kill()


Written = tuple[str, float, float, list[tuple[float, int]], str]


def _through(
    folder: Path, servers: tuple[MySql, MySql], kafka: Kafka, found: list[Written], *, transactions: bool = True
) -> Path:
    """Adds the observations of one pair of servers, with both programs between them; returns the leader's profile."""
    topic, who = ("bench", "cdc") if transactions else ("plain", "cdc without Kafka transactions")
    source, target = (
        profile(folder / f"{topic}{server.server_id}.toml", server, kafka, topic=topic, transactions=transactions)
        for server in servers
    )
    run_program("cdc-producer", source)
    run_program("cdc-consumer", target)
    with running("cdc-producer", source), running("cdc-consumer", target):
        found += written(who, *servers, CHECKPOINT)
    return source


def written(who: str, leader: MySql, follower: MySql, applied: str) -> Iterator[Written]:
    """Runs the steady load, then the single writes; returns the begin and the end of the time that counts, and the
    observations.
    """
    for what, start, warm_up, seconds in (
        (f"{RATE} transactions/s", steady_load, WARM_UP_SECONDS, STEADY_SECONDS),
        ("single writes", single_writes, 1, IDLE_SECONDS),
    ):
        load, counted_from = start(leader), time.time() + warm_up
        times = seen(follower, applied, seconds)
        load.join()
        yield f"{who}, {what}", counted_from, time.time(), times, applied


def ages(
    committed: Iterable[tuple[int, float]], times: Sequence[tuple[float, int]], counted_from: float, until: float
) -> Iterator[float]:
    """The ms after which each transaction was seen."""
    at = 0
    for number, moment in committed:
        while at < len(times) and times[at][1] < number:
            at += 1
        if counted_from < moment < until and at < len(times):
            yield (times[at][0] - moment) * 1e3


def commits(kafka: Kafka, applied: str) -> Iterator[tuple[int, float]]:
    """Each record's sequence, or its GTID's number, with its commit time on the leader (seconds since 1970)."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "bench", "isolation.level": "read_committed",
         "enable.partition.eof": True}
    )  # fmt: skip
    consumer.assign([TopicPartition("bench", 0, 0)])
    while (message := consumer.poll(10)) is not None and message.error() is None:
        body = json.loads(message.value() or b"")
        transaction = body["transaction"]
        number = body["sequence"] if applied == CHECKPOINT else int(transaction["id"].rpartition(":")[2])
        yield number, transaction["ts_us"] / 1e6
    consumer.close()
