"""A network that delays, loses, repeats and brings late what programs and brokers say to one another: each transaction
of the leader is on the follower once, whole and in order, and no state of the follower is one that the leader never
had.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.list_append import History
from tests.checks.sequences import broken_places
from tests.generators.appends import AppendLoad, SnapshotReads, lists_of, transactions_of
from tests.harness.kafka_proxy import KINDS, KafkaProxy, Trouble
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import records, running, write_profile
from tests.harness.seed import SEED
from tests.harness.wait import until

pytestmark = [pytest.mark.integration, pytest.mark.crash]

ROUNDS = int(os.environ.get("CDC_NETWORK_ROUNDS", "5"))
# Only a session's beginning sends these, so the connections are cut for them.
_AT_START = ("InitProducerId", "ListOffsets")
_OF_PRODUCER = {
    "single": ("EndTxn", "EndTxn", "AddPartitionsToTxn", "Produce", *_AT_START),
    "plain": ("Produce", "Produce", "Produce", "EndTxn", "AddPartitionsToTxn", *_AT_START),
}
_OF_CONSUMER = ("Fetch", "Fetch", "OffsetCommit", "ListOffsets")
# A client learns of a connection without a sign of life after the first of these, by default 60 s.
_LIBRDKAFKA = {"socket.timeout.ms": 2000, "reconnect.backoff.max.ms": 200, "request.timeout.ms": 2000}


@pytest.mark.parametrize("written", ["single", "plain", in_long_runs("per_table")])
def test_each_transaction_arrives_once(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    name, chance = f"hostile_{written}", random.Random(SEED)
    with KafkaProxy([kafka.port]) as ours, KafkaProxy([kafka.port]) as theirs:
        source = profile(tmp_path, leader, kafka, proxy=ours, name=name, written=written)
        target = profile(tmp_path, follower, kafka, proxy=theirs, name=name, written=written)
        reads = SnapshotReads(follower, database=name)
        with both(source, target), reads:
            with AppendLoad(leader, database=name, seed=SEED) as load:
                for _ in range(ROUNDS):
                    plan_trouble(chance, ours, _OF_PRODUCER.get(written, _OF_PRODUCER["single"]))
                    plan_trouble(chance, theirs, _OF_CONSUMER)
                    await_arrival(follower, name, load)
                    ours.forget()
                    theirs.forget()
            until(lambda: lists_of(follower, name) == lists_of(leader, name), what="the rest")
        found = records(source)
    order = transactions_of(found)
    history = History(order)
    faults = history.faults_of_order(load.confirmed, lists_of(leader, name))
    faults += history.faults_of_reads([*reads.found, lists_of(follower, name)]) + broken_places(found)
    with capsys.disabled():
        met = Counter(f"{each.api}: {each.kind}" for each in (*ours.met, *theirs.met))
        print(f"\n{written}: {ROUNDS} rounds, {len(order)} transactions, {reads.reads} reads, {len(faults)} faults")
        print(", ".join(f"{count} x {what}" for what, count in met.most_common()))
    assert faults == [], f"CDC_SEED={SEED}"
    assert len(ours.met) >= ROUNDS / 2, "hardly a trouble was met"


def profile(folder: Path, server: MySql, kafka: Kafka, *, proxy: KafkaProxy, name: str, written: str) -> Path:
    """A profile of the server, for programs that reach the brokers through ``proxy``."""
    topics = {
        "bootstrap_servers": proxy.bootstrap_servers,
        "layout": "per_table" if written == "per_table" else "single",
        "prefix": f"{name}.",
        "transactions": written != "plain",
        "librdkafka": _LIBRDKAFKA,
    }
    # Most lists are several messages.
    limits = {"start": "now", "message_bytes": 1000, "commit_records": 50}
    return write_profile(
        folder, server, kafka, name=f"{name}_{server.server_id}", topic=name, resource=name,
        filters={"include_dbs": [name]}, kafka=topics, producer=limits, consumer={"batch_rows": 20},
    )  # fmt: skip


@contextmanager
def both(source: Path, target: Path) -> Iterator[None]:
    """Both programs, which must live through it all."""
    with ExitStack() as opened:
        for program, path in (("cdc-producer", source), ("cdc-consumer", target)):
            log = path.with_suffix(".log")
            opened.enter_context(running(program, path, stderr=opened.enter_context(log.open("w"))))
            if program == "cdc-producer":
                until(lambda log=log: "replicating" in log.read_text(), what="a first start")
        yield


def plan_trouble(chance: random.Random, proxy: KafkaProxy, apis: tuple[str, ...]) -> None:
    """Plans a trouble for a request of one of the kinds ``apis``, and sometimes another one soon after it."""
    for number in range(chance.choice([1, 1, 2])):
        api, kind = chance.choice(apis), chance.choice(KINDS)
        # A late request is worst when the next transaction has begun.
        follows = chance.choice(["", "Produce", "AddPartitionsToTxn"]) if api in ("EndTxn", "Produce") else ""
        seconds = chance.choice([0.1, 0.5, 3.0])
        proxy.plan(Trouble(kind, api, seconds=seconds, passes=chance.randint(0, 3) if not number else 0, until=follows))
        if api in _AT_START:
            proxy.cut()


def await_arrival(follower: MySql, name: str, load: AppendLoad) -> None:
    """Waits until a transaction that the leader commits from now on is on the follower."""
    before = len(load.confirmed)
    until(lambda: len(load.confirmed) > before + 20, what="more load")
    last = load.confirmed[-1].appends[-1]
    until(lambda: last[1] in lists_of(follower, name).get(last[0], ()), what=f"the transaction of {last}")
