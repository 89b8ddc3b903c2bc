"""SIGKILL of every process at random moments under a mixed load, and while tables are copied: nothing is lost, nothing
comes twice."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.checks.sequences import broken_places
from tests.generators.load import DATABASE, Load
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import BIN, records, run, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory
from tests.harness.supervised import Supervised
from tests.harness.wait import until

pytestmark = [pytest.mark.integration, pytest.mark.crash]

KILLS = int(os.environ.get("CDC_KILLS", "5"))  # one of each process
FEW = KILLS <= 5


@pytest.mark.parametrize("written", ["per_table", in_long_runs("plain"), in_long_runs("single")])
def test_random_kills(
    tmp_path: Path,
    mysql_server: MySqlFactory,
    kafka_broker: KafkaFactory,
    capsys: pytest.CaptureFixture[str],
    written: str,
) -> None:
    """The other two ways of writing are killed at named points in integration/producer/test_kill_points.py."""
    layout = "per_table" if written == "per_table" else "single"
    chance = random.Random(SEED)
    leader, follower, kafka = mysql_server(server_id=1), mysql_server(server_id=2), kafka_broker()
    topics = {"layout": layout, "partitions": 2 if layout == "per_table" else 1, "transactions": written != "plain"}
    limits = {"commit_records": 200, "message_bytes": 1000}  # rows of one event are several messages
    source = write_profile(tmp_path, leader, kafka, name="producer", topic="crash", kafka=topics, producer=limits)
    # With few rows in a commit there are several under way at once, wherever rows are only added.
    batches = {"batch_rows": 3 if FEW else chance.choice([1, 3, 5000])}
    target = write_profile(tmp_path, follower, kafka, name="consumer", topic="crash", kafka=topics, consumer=batches)
    # A server takes long to start again: meanwhile the load makes more than all that is waited for.
    pause = 0.06 if FEW else 0.02
    with Load(leader, seed=SEED, pause_seconds=pause) as load, supervised(tmp_path, source, target) as programs:
        victims: list[MySql | Kafka | Supervised] = [leader, follower, kafka, *programs]
        for number in range(KILLS):
            # Each in turn, at a moment of chance, while tables are copied once more. The leader may be away just now.
            run("cdc-producer", source, "--copy", f"{DATABASE}.keyed", "--copy", f"{DATABASE}.coded")
            before = load.transactions + chance.randint(20, 60 if FEW else 200)
            until(lambda before=before: load.transactions > before, what="more load")
            victim = victims[number % len(victims)]
            victim.kill()
            if isinstance(victim, MySql | Kafka):
                victim.start()
            assert not any(program.broken for program in programs), [program.broken for program in programs]
    assert not any(program.broken for program in programs), [program.broken for program in programs]
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until-current")

    found = records(source)
    assert any(record.operation == "Copy" for record in found)
    differences = broken_places(found)
    here, there = content(leader, DATABASE), content(follower, DATABASE)
    differences += [f"table {name}" for name in here | there if here.get(name) != there.get(name)]
    with capsys.disabled():
        transactions = sum(record.last for record in found)
        print(f"\n{written}, {batches}: {KILLS} kills, {transactions} transactions, {len(found)} records")
        print(f"{len(differences)} differences")
    assert differences == [], f"CDC_SEED={SEED}"


@contextmanager
def supervised(folder: Path, source: Path, target: Path) -> Iterator[list[Supervised]]:
    """Both programs, started again whenever they end."""
    producer = Supervised([BIN / "cdc-producer", source], folder / "producer.log")
    consumer = Supervised([BIN / "cdc-consumer", target], folder / "consumer.log")
    with producer.running(), consumer.running():
        yield [producer, consumer]
