"""A state on a real HDFS: the verdicts and the refusals are those of a folder of this machine, and so is the lock."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.folders import Folder, InUseError
from cdc.spark.hadoop_folder import HadoopFolder
from cdc.spark.state.coverage import newest_rows
from cdc.spark.state.store import StateStore
from tests.checks.told import told
from tests.generators.streams import both, replicate
from tests.harness.hdfs import hdfs
from tests.harness.programs import own_name
from tests.harness.wait import until
from tests.spark.test_state import TOPICS, TOY, GrowingTopics, frames

pytestmark = pytest.mark.spark

OURS = {"format": 1}


@pytest.mark.long
def test_audits_on_from_a_state_on_hdfs(spark: SparkSession, kafka: Kafka, tmp_path: Path, store: str) -> None:
    """`make test` has test_what_is_kept_is_found_and_damage_is_refused, and audits on from states of this machine."""
    leader, follower = both([TOY.add((1, "ball"))], [TOY.add((2, "bone"))])
    pair, uri = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path)), f"{store}/a ståte+%41"
    pair.grow(leader, follower)
    assert pair.on_from(uri).verdict == "no drift"
    leader.transaction(TOY.update(((2, "bone"), (2, "rope"))))
    replicate(follower, [TOY.update(((2, "bone"), (2, "rope")))], before=1)
    follower.transaction(TOY.add((4, "ghost")))
    pair.grow(leader, follower)
    stepwise = pair.on_from(uri)
    assert (stepwise.drifted_rows, stepwise.leader.records) == (1, 3)
    assert told(stepwise) == told(pair.from_the_start())
    assert told(pair.on_from(uri), ordered=False) == told(stepwise, ordered=False)
    folder = HadoopFolder(spark, uri)
    assert len((folder.read("history.jsonl") or "").splitlines()) == 3
    assert json.loads(folder.read("state.json") or "")["parts"]["transactions"] == [1, 2]
    assert modes(spark, uri) == "rwx------"


@pytest.mark.parametrize("where", ["hdfs", "store"])
def test_what_is_kept_is_found_and_damage_is_refused(
    spark: SparkSession, tmp_path: Path, store: str, where: str
) -> None:
    """On HDFS, and by Hadoop's API on a file system without a lock, in which files are written in their place."""
    uri = f"{store}/kept-state" if where == "hdfs" else f"file://{tmp_path}/kept"
    state = StateStore.open(spark, HadoopFolder(spark, uri), OURS)
    state.save(None, frames(spark, 3, rows=range(9)), TOPICS)
    state.save(state.load(TOPICS), frames(spark, 4, rows=[2], touched=True), TOPICS)
    state.close()
    folder = HadoopFolder(spark, uri)
    folder.make("5", private=True)  # as a crash leaves it
    state = StateStore.open(spark, folder, OURS)
    held = state.load(TOPICS)
    assert held is not None
    nets = {row["hash"]: row["net"] for row in newest_rows(held.layers).collect()}
    assert nets == dict.fromkeys(range(9), 3) | {2: 4}
    names = {entry.name for entry in folder.entries("") if not entry.name.endswith(".crc")}
    assert names - {"lock"} == {"1", "2", "state.json"}
    other = StateStore(spark, folder, OURS, state._lock)  # as where there is no lock
    with pytest.raises(UserError, match="another audit saved the state since this one read it"):
        other.save(held, frames(spark, 7), TOPICS)
    assert {entry.name for entry in folder.entries("2")} >= {"rows", "records"}
    folder.remove(f"1/rows/{part(folder, '1/rows')}")
    state.close()
    state = StateStore.open(spark, HadoopFolder(spark, uri), OURS)
    with pytest.raises(UserError, match=rf"files of the state are missing or changed.*{uri}/1/rows"):
        state.load(TOPICS)
    state.close()


class _Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


def test_a_crash_before_the_rename_leaves_the_old_state(
    spark: SparkSession, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"{store}/crashed-state"
    state = StateStore.open(spark, uri, OURS)
    state.save(None, frames(spark, 3), TOPICS)
    before = HadoopFolder(spark, uri).read("state.json")

    def dying(*_: object) -> None:
        raise _Killed

    monkeypatch.setattr(HadoopFolder, "_renamed_over", dying)
    with pytest.raises(_Killed):
        state.save(state.load(TOPICS), frames(spark, 5), TOPICS)
    monkeypatch.undo()
    state.close()
    assert HadoopFolder(spark, uri).read("state.json") == before
    state = StateStore.open(spark, uri, OURS)
    state.save(state.load(TOPICS), frames(spark, 5), TOPICS)
    assert json.loads(HadoopFolder(spark, uri).read("state.json") or "")["next"] == {"leader": 6, "follower": 6}
    state.close()


def test_a_folder_of_others_is_refused_and_one_that_is_away_is_told(spark: SparkSession, store: str) -> None:
    folder = HadoopFolder(spark, f"{store}/mine")
    folder.make("", private=True)
    folder.replace("notes.txt", "mine")
    with pytest.raises(UserError, match=r"the folder holds other files and no state: 'notes.txt'"):
        StateStore.open(spark, f"{store}/mine", OURS)
    assert [(entry.name, entry.is_folder) for entry in folder.entries("")] == [("notes.txt", False)]
    with pytest.raises(UserError, match=r"cannot use the state folder: .*UnsupportedFileSystemException"):
        StateStore.open(spark, "nothing://host/state", OURS)


def test_one_audit_has_the_state_and_the_lock_of_a_killed_one_ends(
    spark: SparkSession, store: str, tmp_path: Path
) -> None:
    uri = f"{store}/locked-state"
    state = StateStore.open(spark, uri, OURS)
    with pytest.raises(UserError, match=r"another audit uses the state"):
        StateStore.open(spark, uri, OURS)
    state.close()
    StateStore.open(spark, uri, OURS).close()
    HadoopFolder(spark, uri).remove("lock")
    with hdfs(tmp_path, f"{uri}/lock") as (held, process):
        assert held == "held"
        assert in_use(spark, uri)
        # A lake's lock is such a file, too.
        with pytest.raises(InUseError):
            HadoopFolder(spark, uri).lock("lock")
        process.kill()
        process.wait()
    until(lambda: not in_use(spark, uri), what="the end of the lease")


def in_use(spark: SparkSession, uri: str) -> bool:
    try:
        StateStore.open(spark, uri, OURS).close()
    except UserError as error:
        assert "another audit uses the state" in str(error)
        return True
    return False


def part(folder: Folder, name: str) -> str:
    return next(entry.name for entry in folder.entries(name) if entry.name.endswith(".parquet"))


def modes(spark: SparkSession, uri: str) -> str:
    folder = HadoopFolder(spark, uri)
    return str(folder._files.getFileStatus(folder._path("")).getPermission().toString())
