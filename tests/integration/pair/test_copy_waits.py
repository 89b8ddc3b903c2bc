"""A copy waits for a follower that applies it slowly, and not for one whose consumer does not run."""

import signal
from pathlib import Path

import pytest

from cdc.config.topic_names import PER_TABLE
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.harness.outside import scrape
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, own_name, run_well, running
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

_TABLES, _SOME, _ROWS = 14, 8, 50  # a chunk each


def test_a_follower_that_applies_chunks_slowly_has_nearly_all_when_the_copy_ends(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    name, ports = own_name(tmp_path), (free_port(), free_port())
    shared = {"kafka": {"layout": PER_TABLE, "prefix": f"{name}."}, "filters": {"include_dbs": [name]}}
    limits = {"copy_rows_per_second": 350, "copy_ahead_bytes": 60_000}
    source = shared | {"producer": {"start": "now"} | limits, "metrics": {"port": ports[0]}}
    target = shared | {"consumer": {"rows_per_second": 150}, "metrics": {"port": ports[1]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=source, target=target)
    create = [f"CREATE TABLE t{table} (id INT PRIMARY KEY, pad VARCHAR(1000))" for table in range(_TABLES)]
    numbers = ", ".join(f"({number}, '{'-' * 900}')" for number in range(_ROWS))
    insert = [f"INSERT INTO t{table} VALUES {numbers}" for table in range(_TABLES)]
    begin_now(pair.source, leader)
    pair.on_leader(f"CREATE DATABASE {name}", f"USE {name}", *create, "SET sql_log_bin = 0", *insert)
    pair.replicate()

    some = [part for table in range(_SOME) for part in ("--copy", f"{name}.t{table}")]
    run_well("cdc-producer", pair.source, *some)
    assert "a follower" not in run_well("cdc-producer", pair.source, "--until-current")

    run_well("cdc-producer", pair.source, "--copy", f"{name}.*")
    chunks = _SOME + _TABLES
    applied = lambda: scrape(ports[1])["cdc_consumer_copied_rows_total"] / _ROWS  # noqa: E731
    with running("cdc-consumer", pair.target):
        until(applied, what="the first chunk on the follower")
        with running("cdc-producer", pair.source) as producer:
            copied = lambda: scrape(ports[0])["cdc_producer_copied_rows_total"] / _ROWS  # noqa: E731
            until(lambda: copied() == _TABLES, what="the end of the copy")
            assert applied() >= chunks - 6
            producer.send_signal(signal.SIGTERM)
            said = producer.communicate(timeout=LIMIT_SECONDS)[1]
        until(lambda: applied() == chunks, what="the rest on the follower")
    assert "the copy keeps close to a follower follower=127.0.0.1:" in said
