"""Measures how long after its leader's commit a follower shows a change, and the CPU time that each server and program
spends on a transaction, beside MySQL's own replica.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from measure import process_cpu_seconds, profile, run_program, running, server_process
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
    processes = {"leader": server_process(leader), "replica": server_process(third)}
    found += written("native replica", leader, third, GTIDS, processes)
    run_program("cdc-producer", source)  # the topic has the commit times on the leader
    for title, counted_from, until, times, applied, cpu in found:
        print(f"{title}: {percentiles(list(ages(commits(kafka, applied), times, counted_from, until)))}", flush=True)
        if cpu:
            print(f"    CPU ms of a transaction: {', '.join(f'{who} {ms:.2f}' for who, ms in cpu.items())}", flush=True)
    for each in (leader, follower, third, plain, kafka):
        each.kill()


Written = tuple[str, float, float, list[tuple[float, int]], str, dict[str, float]]


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
    with running("cdc-producer", source) as producer, running("cdc-consumer", target) as consumer:
        leader, follower = map(server_process, servers)
        processes = {"leader": leader, "producer": producer, "broker": kafka.process.pid, "consumer": consumer,
                     "follower": follower}  # fmt: skip
        found += written(who, *servers, CHECKPOINT, processes)
    return source


def written(who: str, leader: MySql, follower: MySql, applied: str, processes: Mapping[str, int]) -> Iterator[Written]:
    """Runs the steady load, then the single writes; returns the begin and the end of the time that counts, the
    observations, and the CPU ms of each of the ``processes`` for a transaction of the steady load. The follower's
    contain those of the observation.
    """
    for what, start, warm_up, seconds in (
        (f"{RATE} transactions/s", steady_load, WARM_UP_SECONDS, STEADY_SECONDS),
        ("single writes", single_writes, 1, IDLE_SECONDS),
    ):
        load, counted_from = start(leader), time.time() + warm_up
        before: dict[str, float] = {}
        sampled = threading.Timer(warm_up, lambda before=before: before.update(cpu_seconds_of(processes)))
        sampled.start()
        times = seen(follower, applied, seconds)
        after = cpu_seconds_of(processes)
        load.join()
        sampled.join()
        transactions = RATE * (seconds - warm_up)
        steady = start is steady_load
        cpu = {name: 1e3 * (after[name] - before[name]) / transactions for name in processes} if steady else {}
        yield f"{who}, {what}", counted_from, time.time(), times, applied, cpu


def cpu_seconds_of(processes: Mapping[str, int]) -> dict[str, float]:
    """The CPU seconds of each process since its start."""
    return {name: process_cpu_seconds(process) for name, process in processes.items()}


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
