"""A lake and an audit's state in an object store: a real S3 server, reached as users do, by spark-submit."""

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from cdc.lake.formats.parquet import POINTER
from cdc.sandbox.fetch.jars import lake_jars, spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from tests.generators.streams import GrowingTopic, Table, both, replicate
from tests.harness.pair import Pair
from tests.harness.programs import BIN, own_name, run_well
from tests.harness.s3 import ObjectStore, object_store, s3_jars
from tests.harness.wait import LIMIT_SECONDS
from tests.spark.conftest import audit
from tests.spark.test_cdc_audit import QUICK, profiles, reported
from tests.spark.test_lake import FORMATS

pytestmark = [pytest.mark.spark, pytest.mark.integration]

LAKE = Path(audit.__file__).parents[1] / "lake" / "__main__.py"
TOY = Table("flvDb/toy", ["id", "name"], ["id"])


@pytest.fixture(scope="module")
def bucket() -> Iterator[ObjectStore]:
    with object_store() as store:
        yield store


def submitted(store: ObjectStore, program: Path, *options: str | Path) -> "subprocess.CompletedProcess[str]":
    """What spark-submit prints of a program; both of its streams are standard output."""
    spark = version("pyspark")
    jars = ",".join(map(str, [*spark_connector_jars(spark), *lake_jars(spark), *s3_jars()]))
    settings = [word for name, value in store.spark.items() for word in ("--conf", f"{name}={value}")]
    line = [BIN / "spark-submit", "--master", "local[2]", "--jars", jars, "--driver-java-options", QUICK, *settings]
    own = dict(os.environ) | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [*line, program, *options], env=own, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


class Reader:
    """Reads the bucket without Spark."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.files = pyarrow.fs.S3FileSystem(
            endpoint_override=store.endpoint, access_key="user", secret_key="password", region="us-east-1"
        )

    def text(self, name: str) -> str:
        with self.files.open_input_stream(f"{self.store.bucket}/{name}") as stream:
            return bytes(stream.read()).decode()

    def names(self, folder: str) -> list[str]:
        selector = pyarrow.fs.FileSelector(f"{self.store.bucket}/{folder}", allow_not_found=True)
        return sorted(each.base_name for each in self.files.get_file_info(selector))

    def rows(self, lake: str, form: str) -> list[tuple[int, int]]:
        """The rows of a lake's only table, by the version that lake.json lists."""
        [listed] = json.loads(self.text(f"{lake}/lake.json"))["tables"]
        address = f"{lake}/{listed['folder']}"
        if form == "delta":
            found = DeltaTable(
                f"s3://{self.store.bucket}/{address}", version=listed["version"], storage_options=self.store.deltalake
            ).to_pyarrow_table()
        elif form == "parquet":
            pointer = json.loads(self.text(f"{address}/{POINTER}"))
            assert [each["name"] for each in pointer["folders"]] == [listed["path"].rpartition("/")[2]]
            found = pq.read_table(f"{self.store.bucket}/{lake}/{listed['path']}", filesystem=self.files)
        else:
            number = int(self.text(f"{address}/metadata/version-hint.text"))
            found = StaticTable.from_metadata(
                f"s3://{self.store.bucket}/{address}/metadata/v{number}.metadata.json",
                {"s3.endpoint": self.store.endpoint, "s3.access-key-id": "user", "s3.secret-access-key": "password",
                 "s3.region": "us-east-1"},
            ).scan().to_arrow()  # fmt: skip
        return sorted((row["id"], row["n"]) for row in found.to_pylist())


@pytest.mark.long
def test_a_lake_in_an_object_store(pair: Pair, bucket: ObjectStore) -> None:
    """`make test` has test_lake.test_a_lake_follows_its_leader."""
    database, reader = "a_lake_in_an_object_store", Reader(bucket)

    def runs(done: str) -> None:
        run_well("cdc-producer", pair.source, "--until-current")
        for form in FORMATS:
            options = ("--to", f"{bucket.address}/{form}", "--format", form, "--history", "--tables", f"{database}.*")
            ended = submitted(bucket, LAKE, pair.source, *options)
            assert ended.returncode == 0 and done in ended.stdout, ended.stdout[-3000:] + ended.stderr[-3000:]

    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT)", "INSERT INTO orders VALUES (1, 1), (2, 2)",
        "CREATE TABLE gone (id INT PRIMARY KEY)", "INSERT INTO gone VALUES (1)", database=database,
    )  # fmt: skip
    runs("2 written")
    pair.on_leader(
        "UPDATE orders SET n = 3 WHERE id = 1", "DELETE FROM orders WHERE id = 2", "INSERT INTO orders VALUES (9, 9)",
        "DROP TABLE gone", database=database,
    )  # fmt: skip
    runs("1 merged")
    assert [reader.rows(form, form) for form in FORMATS] == [[(1, 3), (9, 9)]] * len(FORMATS)
    for form in FORMATS:
        assert [each for each in reader.names(f"{form}/_dropped/{database}") if each.startswith("gone~")]
    runs("1 kept")


@pytest.mark.long
def test_audits_on_from_a_state_in_an_object_store(kafka: Kafka, tmp_path: Path, bucket: ObjectStore) -> None:
    """`make test` has test_state.test_audits_over_cuts_tell_what_one_audit_tells."""
    leader, follower = both([TOY.add((1, "ball"))], [TOY.add((2, "bone"))])
    name = own_name(tmp_path)
    topics = [GrowingTopic(kafka.bootstrap_servers, f"{name}-{side}") for side in ("leader", "follower")]
    options = profiles(tmp_path, kafka.bootstrap_servers, leader=f"{name}-leader", follower=f"{name}-follower")
    options += ["--report", str(tmp_path / "report"), "--state", f"{bucket.address}/state"]

    def audited(status: int) -> str:
        for topic, stream in zip(topics, (leader, follower), strict=True):
            topic.grow(stream.messages, len(stream.messages))
        done = submitted(bucket, Path(audit.__file__), *options)
        assert done.returncode == status, done.stdout[-3000:] + done.stderr[-3000:]
        return f"{reported(tmp_path)['drifted_rows']} of {reported(tmp_path)['leader']['records']} records"

    assert audited(0) == "0 of 2 records"
    leader.transaction(TOY.update(((2, "bone"), (2, "rope"))))
    replicate(follower, [TOY.update(((2, "bone"), (2, "rope")))], before=1)
    follower.transaction(TOY.add((4, "ghost")))
    assert audited(1) == "1 of 3 records"
    assert len(Reader(bucket).text("state/history.jsonl").splitlines()) == 2
