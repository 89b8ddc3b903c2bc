"""The law of the state: audits one after the other, each from what the last one kept, tell what one over all tells."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc.config.profile import Kafka as KafkaProfile
from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.audit import main
from cdc.spark.compare.tally import Table as Line
from cdc.spark.compare.tally import Tally
from cdc.spark.folders import LocalFolder
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.lag import Transit
from cdc.spark.pipeline import audit_topics
from cdc.spark.report.outcome import Audit
from cdc.spark.state.coverage import Covered, identity, needed_later, newest_rows, rows_of
from cdc.spark.state.folder import files as sizes
from cdc.spark.state.store import StateStore
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.watermark import Watermark
from cdc.spark.topics import Replication
from tests.checks.told import told
from tests.checks.verdicts import Histories
from tests.generators.frames import frame_of
from tests.generators.random_streams import RandomStreams
from tests.generators.streams import GrowingTopic, Stream, Table, both, query, replicate
from tests.harness.long_runs import LONG, in_long_runs
from tests.harness.programs import own_name
from tests.harness.seed import SEED
from tests.spark.conftest import RunAudit
from tests.spark.test_cdc_audit import profiles as options_of
from tests.spark.test_cdc_audit import reported
from tests.spark.test_watch import open_to_others

pytestmark = pytest.mark.spark

STREAMS = int(os.environ.get("CDC_STATE_STREAMS", "1"))
CUTS = int(os.environ.get("CDC_STATE_CUTS", "3"))
TOPICS = {LEADER: {"any": "one id"}, FOLLOWER: {"any": "one id"}}  # of two clusters
TOY = Table("db/toy", ["id", "name"], ["id"])


def profiles(kafka: Kafka, name: str) -> dict[str, Profile]:
    resources = {LEADER: "mysql-srv1", FOLLOWER: "mysql-srv1-follower"}
    return {
        side: Profile(
            mysql_resource_name=resource,
            kafka=KafkaProfile(bootstrap_servers=kafka.bootstrap_servers, topic=f"{name}-{side}"),
        )
        for side, resource in resources.items()
    }


class GrowingTopics:
    """Two growing topics, audited from their beginning and on from a state."""

    def __init__(self, spark: SparkSession, kafka: Kafka, folder: Path, name: str, *, fragmented: bool = False) -> None:
        self.spark, self.folder = spark, folder
        self.profiles = profiles(kafka, name)
        self.topics = {
            side: GrowingTopic(kafka.bootstrap_servers, each.kafka.topic, fragmented=fragmented)
            for side, each in self.profiles.items()
        }

    def grow(self, leader: Stream, follower: Stream, upto: tuple[int, int] | None = None) -> None:
        ends = upto or (len(leader.messages), len(follower.messages))
        for side, stream, end in zip((LEADER, FOLLOWER), (leader, follower), ends, strict=True):
            self.topics[side].grow(stream.messages, end)

    def from_the_start(self) -> Audit:
        return audit_topics(self.spark, Replication(self.profiles), self.folder / "whole")

    def on_from(self, state: Path | str) -> Audit:
        opened = StateStore.open(self.spark, state, identity(self.profiles, None))
        try:
            return audit_topics(self.spark, Replication(self.profiles), self.folder / "stepwise", opened)
        finally:
            opened.close()


@pytest.mark.parametrize("number", range(STREAMS))
def test_audits_over_cuts_tell_what_one_audit_tells(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, number: int
) -> None:
    """Up to the second cut statements move and alter tables; between the last ones nobody runs any, and rows stay."""
    streams = RandomStreams(f"{SEED} {number}", steps=200, settled=70, keys=400, unlogged=0.05)
    pair, which = (
        GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path), fragmented=(SEED + number) % 2 == 0),
        f"CDC_SEED={SEED}, stream {number}",
    )
    judged, layers = 0, []
    for at, cut in enumerate(streams.cuts(CUTS)):
        pair.grow(streams.leader, streams.follower, cut)
        stepwise = pair.on_from(tmp_path / "a ståte+%41")
        layers.append(len(kept(tmp_path / "a ståte+%41")["parts"]["rows"]) if stepwise.sequence is not None else 0)
        if at >= CUTS - (2 if LONG else 1):
            whole = pair.from_the_start()
            assert told(stepwise, ordered=False) == told(whole, ordered=False), f"{which}, cut at {cut}"
            judged += whole.sequence is not None
    assert judged, which
    assert whole.foreign_writes, which
    assert max(layers) > 1, f"{which}: {layers}"


def test_what_is_not_covered_is_read_again_and_statements_meet_held_rows(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    leader, follower = both(
        [query("CREATE TABLE", "db", ("CreateTable", "db/toy"))],
        [TOY.add((1, "ball"), (2, "bone"))],
    )
    held = len(leader.messages), len(follower.messages)
    leader.transaction(TOY.add((3, "rope")))
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path))
    pair.grow(leader, follower)
    assert (pair.on_from(tmp_path / "state [1]").verdict, held) == ("no drift", (2, 7))
    read = kept(tmp_path / "state [1]")["read"]
    assert {side: [each[0][0] for each in of_side.values()] for side, of_side in read.items()} == {
        LEADER: [1], FOLLOWER: [6],
    }, "the last records that are covered"  # fmt: skip
    # What the state covers may expire, the ends of Kafka transactions with it.
    pair.topics[LEADER].expire(held[0])
    pair.topics[FOLLOWER].expire()
    # The follower loses the table with the rows that the state holds; the leader has them yet.
    follower.transaction(query("DROP TABLE toy", "db", ("DropTable", "db/toy")))
    pair.grow(leader, follower)
    audit = pair.on_from(tmp_path / "state [1]")
    assert (audit.sequence, audit.drifted_rows, {row.kind for row in audit.drifted}) == (1, 2, {"missing"})
    assert all(row.since_us for row in audit.drifted), "of a change that the audit before has read"
    assert audit.leader.records == 3
    # What nobody looked at may not, even where nothing follows that shows the gap.
    follower.transaction(TOY.add((4, "ghost")))
    pair.grow(leader, follower)
    pair.topics[FOLLOWER].expire()
    with pytest.raises(UserError, match=r"the topic begins at offset 1[12], earlier audits have read up to offset 10"):
        pair.on_from(tmp_path / "state [1]")


@pytest.mark.parametrize("earlier", [in_long_runs(False), True])
def test_a_transaction_that_comes_again_behind_a_state_is_told(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, *, earlier: bool
) -> None:
    """Whether the state has the ids of earlier transactions or not, as one of an ``earlier`` version: from which the
    next one has them, in which they are looked up then."""
    leader, follower = both([TOY.add((1, "ball"))], [TOY.add((2, "bone"))])
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path))
    pair.grow(leader, follower)
    assert pair.on_from(tmp_path / "state").verdict == "no drift"
    pointer = kept(tmp_path / "state")
    ids = pointer["ids"] if not earlier else pointer.pop("ids")
    assert {(side, len(intervals)) for side, _, intervals in ids} == {(LEADER, 1), (FOLLOWER, 1)}
    (tmp_path / "state/state.json").write_text(json.dumps(pointer))
    leader.transaction(TOY.add((3, "rope")))
    replicate(follower, [TOY.add((3, "rope"))], before=1)
    pair.grow(leader, follower)
    assert pair.on_from(tmp_path / "state").verdict == "no drift"
    grown = kept(tmp_path / "state")["ids"]
    assert [sum(last - first + 1 for first, last in each[2]) for each in grown if each[0] == LEADER] == [3]
    assert [each[0] for each in grown] == [each[0] for each in ids]
    leader.transaction(TOY.add((4, "ring")), gtid=json.loads(leader.messages[0])["transaction"]["id"])
    pair.grow(leader, follower)
    audit = pair.on_from(tmp_path / "state")
    assert audit.exit_status == 2
    assert any("it came before, and comes again" in each.detail for each in audit.breaks)


@pytest.mark.long
def test_rows_that_a_state_holds_are_compared_once_their_table_is_parked_no_longer(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    """The consumer ends the parking at the checkpoint that the state covers, and with it no row changes. `make test`
    has test_verdicts.test_a_case, with parked_no_longer.txt.
    """
    histories = Histories()
    for line in (
        "table toy (id, name) key (id)",
        "both: CREATE TABLE toy (id INT PRIMARY KEY, name TEXT)",
        "both: INSERT toy (1, 'ball')",
        "leader: INSERT toy (2, 'a long name')",
        "follower: PARKED 2 parked 'toy'; APPLIED 2",
    ):
        histories.read(line)
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path))
    pair.grow(histories.leader, histories.follower)
    assert [each.parked for each in pair.on_from(tmp_path / "state").under_copy] == [2]
    assert kept(tmp_path / "state")["next"][LEADER] == 3
    for line in ("follower: UNPARKED 2 parked 'toy'; APPLIED 2", "both: INSERT toy (3, 'kite')"):
        histories.read(line)
        pair.grow(histories.leader, histories.follower)
        audit = pair.on_from(tmp_path / "state")
        assert (audit.verdict, audit.drifted_rows, audit.under_copy) == ("drift", 1, [])


def test_a_state_of_an_earlier_version(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """Its records do not name the table that another is made like, nor its rows how their first changes found them."""
    pet = Table("db/pet", ["id", "name"], ["id"])
    create = query("CREATE TABLE toy (id INT)", "db", ("CreateTable", "db/toy"))
    leader, follower = both([create], [pet.update(((1, "old"), (1, "ball")))])
    follower.transaction(query("ALTER TABLE toy", "db", ("AlterTable", "db/toy")))
    replicate(follower, [like := query("CREATE TABLE db.copy LIKE db.toy", "db", ("CreateTable", "db/copy"))], before=1)
    leader.transaction(like)
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path))
    pair.grow(leader, follower)
    assert [each.name for each in pair.on_from(tmp_path / "state").schema] == ["copy", "toy"]
    pointer, old = kept(tmp_path / "state"), tmp_path / "state/1/records"
    frame = spark.read.parquet(str(old)).withColumn(
        "affects", F.expr("transform(affects, a -> struct(a.action, a.uri, a.to))")
    )
    frame = frame.withColumn("chunk", F.expr("IF(chunk IS NULL, NULL, struct(chunk.after, chunk.upto))"))
    rows = spark.read.parquet(str(tmp_path / "state/1/rows"))
    rows = rows.drop(*(f"{side}_{name}" for side in (LEADER, FOLLOWER) for name in ("found", "stood")))
    for name, former in (("records", frame), ("rows", rows)):
        former.write.parquet(str(tmp_path / "aside"))
        shutil.rmtree(tmp_path / "state/1" / name)
        (tmp_path / "aside").rename(tmp_path / "state/1" / name)
        pointer["schemas"][name], pointer["files"][f"1/{name}"] = (
            former.schema.jsonValue(),
            sizes(LocalFolder(old.parent), name),
        )
    (tmp_path / "state/state.json").write_text(json.dumps(pointer | {"format": 4}))
    drop = [query("DROP TABLE toy", "db", ("DropTable", "db/toy")), pet.update(((1, "ball"), (1, "bone")))]
    for at, part in enumerate(drop, 2):
        leader.transaction(part)
        replicate(follower, [part], before=at)
    pair.grow(leader, follower)
    audit = pair.on_from(tmp_path / "state")
    assert ([each.name for each in audit.schema], audit.drifted_rows) == (["copy"], 0)
    assert [(line.table, line.leader_rows, line.older) for line in audit.tables] == [("pet", 1, True)]
    assert kept(tmp_path / "state")["format"] == 5


def test_a_topic_that_was_made_anew_is_refused(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path))
    state = made(spark, tmp_path / "state", identity(pair.profiles, None))
    state.close()
    state = StateStore.open(spark, tmp_path / "state", identity(pair.profiles, None))
    with pytest.raises(UserError, match="topic any of the follower was deleted and created again"):
        state.load({LEADER: {"any": "one id"}, FOLLOWER: {"any": "another id"}})
    state.close()


def test_a_state_of_something_else_in_use_or_damaged_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    ours = {"leader topic": "a", "format": 1}
    state = made(spark, tmp_path, ours)
    with pytest.raises(UserError, match="another audit uses the state"):
        StateStore.open(spark, tmp_path, ours)
    state.close()
    with pytest.raises(UserError, match="saved with leader topic 'a', now it is 'b'"):
        StateStore.open(spark, tmp_path, {**ours, "leader topic": "b"})
    # Another version of cdc keeps the same, as long as it is in the same format.
    told = kept(tmp_path) | {"version": "0.0.1"}
    (tmp_path / "state.json").write_text(json.dumps(told))
    state = StateStore.open(spark, tmp_path, ours)
    assert state.load(TOPICS) is not None
    state.close()
    assert "version" not in identity({LEADER: Profile(), FOLLOWER: Profile()}, None)
    with pytest.raises(UserError, match=r"saved by a newer version of cdc, in format 1.*upgrade cdc"):
        StateStore.open(spark, tmp_path, {**ours, "format": 0})
    with pytest.raises(UserError, match="saved with format 1, now it is 2"):
        StateStore.open(spark, tmp_path, {**ours, "format": 2})
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(UserError, match="cannot read the state"):
        StateStore.open(spark, tmp_path, ours)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot use the state folder"):
        StateStore.open(spark, tmp_path / "file", ours)


def files(folder: Path) -> dict[str, str]:
    """The files in a folder and below, with their content."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "precious",
    ["2024/precious.sql", "notes.txt", "2025/transactions/january.csv", "2025/records", "7/leader/x"],
)
def test_a_folder_that_is_somebodys_own_is_refused_and_left_alone(
    spark: SparkSession, tmp_path: Path, precious: str
) -> None:
    (tmp_path / precious).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / precious).write_text("mine")
    with pytest.raises(UserError, match=r"the folder holds other files and no state: .*hint: name an empty folder"):
        StateStore.open(spark, tmp_path, {"format": 1})
    assert files(tmp_path) == {precious: "mine"}


def test_a_state_leaves_alone_what_it_did_not_put_there(spark: SparkSession, tmp_path: Path) -> None:
    made(spark, tmp_path, {"format": 1}).close()
    (tmp_path / "2024").mkdir()
    (tmp_path / "2024/precious.sql").write_text("mine")
    (tmp_path / "lock").write_text("mine")
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    StateStore.open(spark, tmp_path, {"format": 1}).close()
    assert (tmp_path / "2024/precious.sql").read_text() == (tmp_path / "lock").read_text() == "mine"
    assert (tmp_path / "1/rows").exists()
    assert not (tmp_path / "2").exists()


def test_what_a_crash_left_of_the_first_state_is_not_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    made(spark, tmp_path, {"format": 1}).close()
    (tmp_path / "state.json").replace(tmp_path / "state.json.new")
    (tmp_path / "1/rows/_temporary/0").mkdir(parents=True)
    shutil.rmtree(tmp_path / "1/transit")
    StateStore.open(spark, tmp_path, {"format": 1}).close()
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "state.json.new"}


def test_a_state_that_lost_files_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    state = made(spark, tmp_path, {"format": 1})
    lost = next((tmp_path / "1" / "rows").glob("*.parquet"))
    kept = lost.read_bytes()
    lost.write_bytes(kept[:-1])
    with pytest.raises(UserError, match=r"files of the state are missing or changed.*1/rows.*remove the folder"):
        state.load(TOPICS)
    lost.write_bytes(kept)
    assert state.load(TOPICS) is not None
    shutil.rmtree(tmp_path / "1" / "records")
    with pytest.raises(UserError, match=r"files of the state are missing or changed.*1/records"):
        state.load(TOPICS)
    state.close()


def test_a_state_with_fewer_rows_than_were_written_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    made(spark, tmp_path, {"format": 1}).close()
    told = kept(tmp_path)
    assert told["counts"] == {"1/rows": 1, "1/transit": 1, "1/transactions": 8, "1/records": 8}
    told["counts"]["1/transactions"] += 1
    (tmp_path / "state.json").write_text(json.dumps(told))
    with pytest.raises(
        UserError, match=r"files of the state are missing or changed.*1/transactions.*remove the folder"
    ):
        content(spark, tmp_path)
    # As an earlier version kept it whose executors wrote into folders of their own.
    del told["counts"]
    (tmp_path / "state.json").write_text(json.dumps(told))
    assert content(spark, tmp_path)[0] == {LEADER: 4, FOLLOWER: 4}
    told["contents"]["follower"]["records"] += 1
    (tmp_path / "state.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match="the state lacks transactions of the follower"):
        content(spark, tmp_path)
    for path in (tmp_path / "1/rows").glob("*.parquet"):
        path.unlink()
    told["files"]["1/rows"] = [0, 0]
    (tmp_path / "state.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match=r"files of the state are missing or changed.*1/rows"):
        content(spark, tmp_path)


def test_what_an_earlier_version_left_to_the_umask_is_tightened(spark: SparkSession, tmp_path: Path) -> None:
    made(spark, tmp_path, {"format": 1}).close()
    theirs = tmp_path / "2024"
    theirs.mkdir()
    (theirs / "precious.sql").touch()
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    StateStore.open(spark, tmp_path, {"format": 1}).close()
    assert open_to_others(tmp_path) == [f"{theirs} 40755", f"{theirs}/precious.sql 100644"]


def test_a_save_that_failed_is_not_in_the_way_of_the_next_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, covered = made(spark, tmp_path, {"format": 1}), frames(spark, 5)

    def fails(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space"):
        state.save(state.load(TOPICS), covered, TOPICS)
    monkeypatch.undo()
    state.save(state.load(TOPICS), covered, TOPICS)
    state.close()
    assert content(spark, tmp_path)[0] == {LEADER: 6, FOLLOWER: 6}


def test_a_save_that_fails_costs_no_verdict(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, run_audit: RunAudit
) -> None:
    leader, follower = both([query("CREATE TABLE", "db", ("CreateTable", "db/toy"))], [TOY.add((1, "ball"))])
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path))
    pair.grow(leader, follower)
    assert pair.on_from(tmp_path / "state").verdict == "no drift"
    kept = (tmp_path / "state/state.json").read_text()
    follower.transaction(TOY.add((4, "ghost")))
    pair.grow(leader, follower)
    # In the way of the next generation.
    (tmp_path / "state/2").touch()
    names = {side: f"{own_name(tmp_path)}-{side}" for side in pair.topics}
    options = options_of(tmp_path, kafka.bootstrap_servers, **names)
    done = run_audit(*options, "--report", str(tmp_path / "report"), "--state", str(tmp_path / "state"))
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith("cdc-audit: the state was not kept: ")
    assert "is not a directory" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout.startswith("drift at sequence 1\n")
    assert reported(tmp_path)["exit_status"] == 1
    assert (tmp_path / "state/state.json").read_text() == kept


def test_an_audit_that_does_not_get_the_state_leaves_the_report_to_the_one_that_has_it(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {side: f"{own_name(tmp_path)}-{side}" for side in (LEADER, FOLLOWER)}
    options = options_of(tmp_path, kafka.bootstrap_servers, **names)
    state = StateStore.open(spark, tmp_path / "state", {"format": 1})
    (tmp_path / "report").mkdir()
    (tmp_path / "report/report.json").touch()
    assert main([*options, "--report", str(tmp_path / "report"), "--state", str(tmp_path / "state")]) == 2
    assert "another audit uses the state" in capsys.readouterr().err
    assert (tmp_path / "report/report.json").exists()
    state.close()


_NO_CHUNK = (
    "CAST(NULL AS STRUCT<after: ARRAY<STRING>, upto: ARRAY<STRING>, repair: BOOLEAN>) AS chunk",
    "CAST(NULL AS INT) AS rows",
)


def frames(spark: SparkSession, upto: int, *, rows: Sequence[int] = (0,), touched: bool = False) -> Covered:
    """What an audit up to a sequence of both sides might cover, as small as it can be, with the hashes of ``rows``."""
    ends = [(side, number) for side in (LEADER, FOLLOWER) for number in range(upto + 1)]
    transactions = frame_of(spark, ends, "side STRING, final BIGINT").withColumn("records", F.lit(1))
    records = transactions.selectExpr(
        "side", "final AS sequence", "true AS valid", "'DDL' AS query", "'db' AS database", "'t' AS table",
        "concat(side, '/0') AS partition", "final * 2 AS offset", "'b.1' AS file", "4L AS position",
        "'t' AS transaction", "1L AS ts_us", *_NO_CHUNK,
    )  # fmt: skip
    contents = Contents(9, 0, 0, 9, 1, 2, frozenset({"r"}), frozenset({("db", "t")}), unchecked={("db", "t"): 3})
    return Covered(
        ends={LEADER: upto, FOLLOWER: upto},
        contents={LEADER: contents, FOLLOWER: contents},
        rows=frame_of(spark, [(row, upto) for row in rows], "hash BIGINT, net BIGINT"),
        touched=touched,
        open=None,
        tally=Tally([Line("db", "t", 1, 1, 0, 0, 0, "a", "a")]),
        mark=Watermark(upto, upto, -1, None, 0, 0),
        transit=Transit(upto, 1, 2, frame_of(spark, [(upto,)], "count BIGINT")),
        transactions=transactions,
        records=records,
        arrivals=frame_of(spark, [(LEADER, upto, 7), (LEADER, 99, 9)], "side STRING, upto BIGINT, offset BIGINT"),
        ids=[],
    )


def made(spark: SparkSession, folder: Path, ours: dict[str, Any]) -> StateStore:
    state = StateStore.open(spark, folder, ours)
    state.save(None, frames(spark, 3), TOPICS)
    return state


def content(spark: SparkSession, folder: Path) -> tuple[Any, ...]:
    """What a new process finds in the state."""
    state = StateStore.open(spark, folder, {"format": 1})
    try:
        held = state.load(TOPICS)
    finally:
        state.close()
    assert held is not None
    listed = [sorted(frame.collect()) for frame in (newest_rows(held.layers), held.transactions, held.records)]
    return held.next, held.offsets, held.contents, listed, held.tally, held.mark, held.arrivals, held.read


def kept(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "state.json").read_text())
    return found


def test_layers_are_put_together_and_the_last_one_tells_of_a_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc.spark.state.parquet_parts._MOST_GENERATIONS", 3)
    state = StateStore.open(spark, tmp_path, {"format": 1})
    state.save(None, frames(spark, 0, rows=range(9)), TOPICS)
    wanted = dict.fromkeys(range(9), 0)
    for upto in range(1, 5):
        touched = [upto % 9, upto * 2 % 9]
        state.save(state.load(TOPICS), frames(spark, upto, rows=sorted({*touched}), touched=True), TOPICS)
        wanted |= dict.fromkeys(touched, upto)
    held = state.load(TOPICS)
    assert held is not None
    assert {row["hash"]: row["net"] for row in newest_rows(held.layers).collect()} == wanted
    some = frame_of(spark, [(2,), (77,)], "hash BIGINT")
    for few in (True, False):
        assert list(map(tuple, rows_of(held.layers, some, few=few).collect())) == [(2, wanted[2])]
    # Where they were three already, those above the first became one, of as many rows as they tell of.
    assert [kept(tmp_path)[name] for name in ("parts", "rows", "above")] == [
        {"rows": [1, 4, 5], "transit": [5], "transactions": [4, 5], "records": [4, 5]},
        9,
        7,
    ]
    assert {path.name for path in (tmp_path / "1").iterdir()} == {"rows"}
    state.save(held, frames(spark, 7, rows=range(5)), TOPICS)
    assert [kept(tmp_path)[name] for name in ("rows", "above")] == [5, 0]
    assert kept(tmp_path)["parts"]["rows"] == [6]
    state.close()


def test_the_state_keeps_statements_and_notes_and_none_of_what_each_commit_updates(spark: SparkSession) -> None:
    kept = {("db", "t", "DDL"), ("cdc", "ledger", None), ("cdc", "conflicts", None), ("cdc", "offsets", "DDL")}
    left = {("db", "t", None), ("cdc", "checkpoint", None), ("cdc", "offsets", None)}
    records = frame_of(spark, sorted(kept | left, key=repr), "database STRING, table STRING, query STRING")
    covered = replace(frames(spark, 1), records=records.selectExpr("*", "true AS valid", *_NO_CHUNK))
    assert {tuple(row)[:3] for row in needed_later(covered).collect()} == kept


class _Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


def test_a_crash_at_any_point_leaves_the_old_state_or_the_new_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(spark, tmp_path / "old", {"format": 1}).close()
    old = content(spark, tmp_path / "old")
    covered = frames(spark, 5)
    points: list[tuple[object, str]] = [
        (os, "fsync"),
        (Path, "replace"),
        (shutil, "rmtree"),
        (type(covered.records.write), "parquet"),
    ]
    outcomes = []
    for owner, name in points:
        real: Callable[..., Any] = getattr(owner, name)
        # Each place of the commit itself; of the many writes before it every third one, and all in long runs.
        every = 1 if LONG or name in ("replace", "rmtree") else 3
        for survived in range(0, 99, every):
            folder = tmp_path / f"{name}-{survived}"
            shutil.copytree(tmp_path / "old", folder)
            calls = 0

            def dying(*arguments: Any, survived: int = survived, real: Any = real, **options: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls > survived:
                    raise _Killed
                return real(*arguments, **options)

            state = StateStore.open(spark, folder, {"format": 1})
            held = state.load(TOPICS)
            monkeypatch.setattr(owner, name, dying)
            try:
                state.save(held, covered, TOPICS)
            except _Killed:
                done = False
            else:
                done = True
            monkeypatch.undo()
            state.close()
            after = content(spark, folder)
            assert after == old or (after[0], after[3][0][0][1]) == ({LEADER: 6, FOLLOWER: 6}, 5), (name, survived)
            outcomes.append(after == old)
            if done:
                break
            if name == "fsync" and survived > 3:
                break
    assert True in outcomes
    assert False in outcomes
