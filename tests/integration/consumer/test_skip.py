"""cdc-consumer --skip: the operator lets the follower do without a record that it refuses, and nothing else."""

import signal
from pathlib import Path

import pytest

from tests.harness.programs import refused, run_well, running
from tests.harness.topic import Stage, number, text
from tests.harness.wait import LIMIT_SECONDS, until
from tests.harness.warm_start import WarmProcess

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


def skipped(stage: Stage) -> list[tuple[object, ...]]:
    ours = f"resource = '{stage.name}' AND state = 'skipped'"
    return stage.execute(f"SELECT sequence, statement, note FROM cdc.ledger WHERE {ours} ORDER BY sequence")


def test_a_skip_that_is_done_is_not_done_again(stage: Stage) -> None:
    stage.topic.send([add(stage, (1, "long"))])
    with running("cdc-consumer", stage.profile, "--skip", "2") as process:
        until(lambda: stage.checkpoint() == 2, what="the record is skipped")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert "applied or skipped already" in refused("cdc-consumer", stage.profile, "--skip", "2")
    assert len(skipped(stage)) == 1


def test_a_conflict_that_was_rolled_back_is_not_counted(tmp_path: Path, stage: Stage) -> None:
    stage.topic.send([add(stage, (1, "a"))])
    stage.apply()
    path, first = f"{stage.name}/t", [number(1), text("a")]
    missing = stage.topic.delete(path, COLUMNS, [number(9), text("x")], key=["id"])
    locked = stage.topic.update(path, COLUMNS, (first, [number(1), text("b")]), key=["id"])
    odd = stage.topic.add(path, COLUMNS, [{"NewType": 1}, text("a")], key=["id"])
    stage.topic.send([missing, locked, odd])
    said = tmp_path / "said"
    command = ["cdc-consumer", str(stage.profile), "--until-current", "--skip", "5"]
    with stage.follower.connect(database=stage.name, autocommit=False) as holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM t FOR UPDATE")
        with said.open("w") as log, WarmProcess(*command, stderr=log.fileno()) as process:
            until(lambda: "waiting for a server" in said.read_text(), what="the first attempt's end")
            holder.rollback()
            process.wait(LIMIT_SECONDS)
    assert process.returncode == 0, said.read_text()
    assert said.read_text().count(" conflict ") == 2
    assert " conflicts=1 " in said.read_text()


def test_rows_are_left_until_the_copy_that_is_applied_beside_them(stage: Stage) -> None:
    """The first chunk of the table is planned before the follower has refused the row before it."""
    topic, paths = stage.topic, [stage.create_table("u", "(id INT PRIMARY KEY, name VARCHAR(3))"), f"{stage.name}/t"]

    def chunk(path: str, at: int) -> list[dict[str, object]]:
        after, upto = [number(at - 1)] if at else None, [number(at)]
        return topic.chunk(path, COLUMNS, [number(at), text("a")], key=["id"], after=after, upto=upto)

    others, copied = ([chunk(path, at) for at in range(2)] for path in paths)
    topic.send([add(stage, (7, "b"))], *others, [add(stage, (8, "long"))], *copied, [add(stage, (9, "c"))])
    run_well("cdc-consumer", stage.profile, "--until-current", "--skip", f"{stage.name}.t")
    assert stage.execute("SELECT id FROM t ORDER BY id") == [(0,), (1,), (7,), (9,)]
    assert [sequence for sequence, *_ in skipped(stage)] == [6]
