"""cdc-consumer --skip: the operator lets the follower do without a record that it refuses, and nothing else."""

import signal
import subprocess
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import BIN, refused, run_well, running, write_profile
from tests.harness.topic import Stage, number, text
from tests.harness.wait import until

pytestmark = pytest.mark.integration

COLUMNS = ["id", "name"]


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A table on the follower whose column is shorter than the leader's; the next record is number 2."""
    stage.create_table("t", "(id INT PRIMARY KEY, name VARCHAR(3))")
    stage.apply()
    return stage


def add(stage: Stage, *rows: tuple[int, str]) -> dict[str, object]:
    return stage.topic.add(f"{stage.name}/t", COLUMNS, *[[number(id_), text(name)] for id_, name in rows], key=["id"])


def skip(stage: Stage, *sequences: int) -> str:
    options = [part for sequence in sequences for part in ("--skip", str(sequence))]
    return run_well("cdc-consumer", stage.profile, "--until-current", *options)


def rows(stage: Stage) -> list[tuple[object, ...]]:
    return stage.execute("SELECT * FROM t ORDER BY id")


def skipped(stage: Stage) -> list[tuple[object, ...]]:
    ours = f"resource = '{stage.name}' AND state = 'skipped'"
    return stage.execute(f"SELECT sequence, statement, note FROM cdc.ledger WHERE {ours} ORDER BY sequence")


def test_a_record_is_skipped_whole_and_its_transaction_goes_on(stage: Stage) -> None:
    stage.topic.send([add(stage, (1, "a"))])
    stage.topic.send([add(stage, (2, "b")), add(stage, (3, "c"), (4, "long")), add(stage, (5, "e"))])
    stage.topic.send([add(stage, (6, "f"))])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert line.endswith("to do without this record for good: cdc-consumer PROFILE --skip 4")
    log = skip(stage, 4)
    # Row 3 was in the same record; the records around it, of the same leader transaction, are there.
    assert rows(stage) == [(1, "a"), (2, "b"), (5, "e"), (6, "f")]
    ((sequence, statement, note),) = skipped(stage)
    assert (sequence, statement) == (4, f"Add, 2 rows of flv://{stage.name}/{stage.name}/t")
    assert "Data too long" in str(note)
    assert " record skipped sequence=4 " in log
    assert stage.checkpoint() == 6


def test_several_records_of_one_batch(stage: Stage) -> None:
    stage.topic.send([add(stage, (1, "long"))], [add(stage, (2, "b"))], [add(stage, (3, "long"))])
    assert "--skip 2" in refused("cdc-consumer", stage.profile, "--until-current", status=3)
    line = refused("cdc-consumer", stage.profile, "--until-current", "--skip", "2", status=3)
    assert "--skip 4" in line
    assert (rows(stage), skipped(stage)) == ([], [])
    skip(stage, 2, 4)
    assert rows(stage) == [(2, "b")]
    assert [row[0] for row in skipped(stage)] == [2, 4]


def test_what_the_follower_takes_is_not_skipped(stage: Stage) -> None:
    stage.topic.send([add(stage, (1, "a"))])
    line = refused("cdc-consumer", stage.profile, "--until-current", "--skip", "2")
    assert "the follower has applied record 2, so it is not skipped" in line
    assert rows(stage) == [(1, "a")]
    assert skipped(stage) == []


def test_what_is_applied_or_not_there_is_refused(stage: Stage) -> None:
    line = refused("cdc-consumer", stage.profile, "--until-current", "--skip", "1")
    assert "record 1 has been applied or skipped already: the follower is at sequence 1" in line
    line = refused("cdc-consumer", stage.profile, "--until-current", "--skip", "2")
    assert "there is no record 2 in the topic: the last is 1" in line


def test_a_skip_that_is_done_is_not_done_again(stage: Stage) -> None:
    stage.topic.send([add(stage, (1, "long"))])
    with running("cdc-consumer", stage.profile, "--skip", "2") as process:
        until(lambda: stage.checkpoint() == 2, what="the record is skipped")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert "applied or skipped already" in refused("cdc-consumer", stage.profile, "--skip", "2")
    assert len(skipped(stage)) == 1


def test_a_conflict_under_stop_can_be_skipped(tmp_path: Path, stage: Stage, follower: MySql, kafka: Kafka) -> None:
    write_profile(tmp_path, follower, kafka, name=stage.name, resource=stage.name, consumer={"on_conflict": "stop"})
    stage.execute("INSERT INTO t VALUES (1, 'own')")
    stage.topic.send([add(stage, (1, "a")), add(stage, (2, "b"))])
    assert "--skip 2" in refused("cdc-consumer", stage.profile, "--until-current", status=3)
    skip(stage, 2)
    assert rows(stage) == [(1, "own"), (2, "b")]


def test_a_value_that_is_not_known_can_be_skipped(stage: Stage) -> None:
    odd = stage.topic.add(f"{stage.name}/t", COLUMNS, [{"NewType": 1}, text("a")], key=["id"])
    stage.topic.send([odd, add(stage, (2, "b"))])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert "a value of flv://" in line
    assert "NewType" in line
    assert "--skip 2" in line
    skip(stage, 2)
    assert rows(stage) == [(2, "b")]


def test_a_conflict_that_was_rolled_back_is_not_counted(tmp_path: Path, stage: Stage) -> None:
    stage.topic.send([add(stage, (1, "a"))])
    stage.apply()
    path, first = f"{stage.name}/t", [number(1), text("a")]
    missing = stage.topic.delete(path, COLUMNS, [number(9), text("x")], key=["id"])
    locked = stage.topic.update(path, COLUMNS, (first, [number(1), text("b")]), key=["id"])
    odd = stage.topic.add(path, COLUMNS, [{"NewType": 1}, text("a")], key=["id"])
    stage.topic.send([missing, locked, odd])
    said = tmp_path / "said"
    command = [BIN / "cdc-consumer", stage.profile, "--until-current", "--skip", "5"]
    with stage.follower.connect(database=stage.name, autocommit=False) as holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM t FOR UPDATE")
        with said.open("w") as log, subprocess.Popen(command, stderr=log) as process:
            until(lambda: "waiting for a server" in said.read_text(), what="the first attempt's end")
            holder.rollback()
    assert process.returncode == 0, said.read_text()
    assert said.read_text().count(" conflict ") == 2
    assert " conflicts=1 " in said.read_text()


def test_a_statement_and_what_follows_it(stage: Stage) -> None:
    statement = stage.topic.query("ALTER TABLE t ADD name INT", ("AlterTable", f"{stage.name}/t"), database=stage.name)
    stage.topic.send([statement])
    stage.topic.send([add(stage, (1, "a"))])
    assert "--skip 2" in refused("cdc-consumer", stage.profile, "--until-current", status=3)
    skip(stage, 2)
    assert rows(stage) == [(1, "a")]
    assert skipped(stage)[0][:2] == (2, "ALTER TABLE t ADD name INT")
