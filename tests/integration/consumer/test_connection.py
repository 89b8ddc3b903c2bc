"""cdc-consumer's connection to the follower, and the lock that lives with it."""

import re
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from cdc.config.profile import load
from cdc.consumer import pipeline
from cdc.consumer.errors import Interrupted
from cdc.consumer.follower import locks, session
from cdc.consumer.follower.locks import lock_name
from cdc.consumer.follower.session import Session
from cdc.consumer.metrics import Activity, Counters
from cdc.consumer.state.skips import Skips
from cdc.kafka.broker_checks import Brokers
from cdc.sandbox.server.kafka import Kafka
from cdc.service.retry import Retry
from tests.altered.impatient_consumer import SILENT_SECONDS, impatient
from tests.harness.programs import refused, run, running, write_profile
from tests.harness.relay import Relay
from tests.harness.topic import Stage, number
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


@pytest.fixture
def stage(stage: Stage) -> Stage:
    stage.apply()
    return stage


def holder(stage: Stage) -> int | None:
    """The connection of the consumer that is at work."""
    ((found,),) = stage.execute(f"SELECT IS_USED_LOCK('{lock_name(stage.name)}')", database="mysql")
    return None if found is None else int(found)


def through(relay: Relay, stage: Stage, folder: Path, kafka: Kafka) -> Path:
    """The profile of a consumer whose connections can be cut."""
    return write_profile(
        folder, stage.follower, kafka, name="through", resource=stage.name, topic=stage.name,
        database={"port": relay.port},
    )  # fmt: skip


def test_a_connection_that_is_lost_between_the_questions_of_a_start(stage: Stage) -> None:
    for asked in ("`checkpoint` WHERE resource=", "`checkpoint` WHERE resource<>"):
        done = run("killed_consumer", stage.profile, f"lost asking {asked}", "-1")
        assert (done.returncode, "the follower cannot be used: lost" in done.stderr) == (0, True), done.stderr


def test_a_connection_that_only_the_server_takes_for_alive(stage: Stage, tmp_path: Path, kafka: Kafka) -> None:
    path = stage.create_table("t", "(i INT)")
    with (
        Relay(stage.follower.port) as relay,
        running("cdc-consumer", through(relay, stage, tmp_path, kafka)) as process,
    ):
        until(lambda: holder(stage) and stage.checkpoint() == 1, what="the start")
        before = holder(stage)
        # Held, so that it does not just then speak to the server and miss the connection.
        process.send_signal(signal.SIGSTOP)
        relay.strand()
        assert holder(stage) == before
        process.send_signal(signal.SIGCONT)
        stage.topic.send([stage.topic.add(path, ["i"], [number(1)])])
        until(lambda: stage.checkpoint() == 2, what="the row over a new connection")
        assert holder(stage) != before
    assert stage.execute("SELECT * FROM t") == [(1,)]


def test_a_connection_that_is_lost_while_the_topic_is_quiet(stage: Stage, tmp_path: Path, kafka: Kafka) -> None:
    """It is missed before there is something to apply, and no trouble is left over."""
    with Relay(stage.follower.port) as relay, impatient(through(relay, stage, tmp_path, kafka)) as log:
        until(lambda: " start " in log.read_text(), what="the start")
        before = holder(stage)
        relay.strand()
        until(lambda: holder(stage) not in (None, before), what="a new connection")
        until(lambda: "no longer waiting" in log.read_text(), what="the end of the trouble")


def test_a_consumer_that_is_gone_without_a_word(stage: Stage, tmp_path: Path, kafka: Kafka) -> None:
    """The refusal of another one, elsewhere, names the way out."""
    with Relay(stage.follower.port) as relay:
        with running("cdc-consumer", through(relay, stage, tmp_path, kafka)) as process:
            until(lambda: holder(stage), what="the start")
            process.send_signal(signal.SIGSTOP)
            relay.strand()
            process.kill()
            process.wait()
        line = refused("cdc-consumer", stage.profile, "--until-current")
        assert f"connection {holder(stage)} holds the lock" in line
        stage.execute(*re.findall(r"KILL \d+", line))
        stage.apply()


def test_a_stop_is_heard_while_the_lock_is_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start: an orderly stop is no refusal."""
    monkeypatch.setattr(locks, "_LOCK_SECONDS", 600)
    profile, stop = load(stage.profile), threading.Event()
    retry = Retry(seconds=60, log=lambda *_, **__: None, stop=stop)
    brokers = Brokers(profile.kafka.properties())
    counters = Counters()
    activity = Activity(counters, retry=retry, brokers=brokers, commits="", follower=profile.database)
    with Session(profile.database, lock=stage.name) as other:
        other.connect()
        stop.set()
        pipeline.run(profile, retry=retry, counters=counters, options=pipeline.Options(Skips([])), stop=stop)
    assert activity.totals() == {}


def test_the_server_ends_a_connection_that_died_without_a_word(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SILENT_SECONDS", SILENT_SECONDS)
    monkeypatch.setattr(locks, "_LOCK_SECONDS", LIMIT_SECONDS)
    database = load(stage.profile).database
    with Session(database, lock="silent") as silent, Session(database, lock="silent") as other:
        silent.connect()
        begun = time.monotonic()
        while time.monotonic() - begun < SILENT_SECONDS + 2:
            silent.keep()
            time.sleep(0.1)
        # Silent from here on, until the server ends it, and the lock with it.
        other.connect()
        with pytest.raises(Interrupted):
            silent.keep()


def test_a_firewall_is_told_of_a_connection_that_waits_for_hours(stage: Stage) -> None:
    with Session(load(stage.profile).database) as made:
        made.connect()
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        found = [made._connection._sock.getsockopt(socket.IPPROTO_TCP, option) for option in options]
        assert (made._connection._sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), found) == (1, [60, 15, 4])


def test_a_connection_with_nothing_to_do_is_kept(stage: Stage) -> None:
    """While the topic is quiet, and while a statement takes long on a connection of its own."""
    stage.create_table("t", "(i INT)")
    alter = stage.topic.query("ALTER TABLE t ADD COLUMN a INT", ("AlterTable", f"{stage.name}/t"), database=stage.name)
    waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER TABLE t ADD%'"
    with impatient(stage.profile):
        until(lambda: holder(stage) and stage.checkpoint() == 1, what="the start")
        before = holder(stage)
        time.sleep(SILENT_SECONDS + 2)
        assert holder(stage) == before
        with stage.follower.connect(database=stage.name, autocommit=False) as other, other.cursor() as cursor:
            cursor.execute("SELECT * FROM t")  # holds the metadata lock that the statement needs
            stage.topic.send([alter])
            until(lambda: stage.execute(waiting) == [(1,)], what="the statement waits")
            time.sleep(SILENT_SECONDS + 2)
            assert stage.execute(waiting) == [(1,)]
            assert holder(stage) == before
            other.rollback()
        until(lambda: stage.checkpoint() == 2, what="the statement")
        assert holder(stage) == before


def test_a_statement_that_somebody_killed_is_tried_again(stage: Stage) -> None:
    """By hand or by pt-kill: the follower does not refuse it."""
    stage.create_table("t", "(i INT)")
    stage.apply()
    alter = stage.topic.query("ALTER TABLE t ADD COLUMN a INT", ("AlterTable", f"{stage.name}/t"), database=stage.name)
    stage.topic.send([alter])
    waiting = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER TABLE t ADD%'"
    with stage.follower.connect(database=stage.name, autocommit=False) as other, other.cursor() as cursor:
        cursor.execute("SELECT * FROM t")  # holds the metadata lock that the statement needs
        with impatient(stage.profile) as log:
            until(lambda: stage.execute(waiting), what="the statement waits")
            stage.execute(f"KILL QUERY {stage.execute(waiting)[0][0]}")
            until(lambda: "MySQL error 1317" in log.read_text(), what="its end")
            other.rollback()
            until(lambda: stage.checkpoint() == 2, what="the statement")


def test_a_connection_is_kept_while_the_topic_is_awaited(stage: Stage, tmp_path: Path, kafka: Kafka) -> None:
    with impatient(write_profile(tmp_path, stage.follower, kafka, name="awaited", resource=stage.name)):
        until(lambda: holder(stage), what="the lock")
        before = holder(stage)
        time.sleep(SILENT_SECONDS + 2)
        assert holder(stage) == before
