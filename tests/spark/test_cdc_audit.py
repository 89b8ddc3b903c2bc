"""The audit as users run it, on topics in a real Kafka: what it prints and writes, and how it ends."""

import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.service.java import require_java
from cdc.service.spark_packages import kafka_connector
from cdc.spark.job.launch import mapped, written
from tests.checks.json_schema import SCHEMA, faults
from tests.generators.streams import Stream, Table, publish, publish_per_table, tutorial
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import BIN, own_name, refused, run
from tests.harness.wait import LIMIT_SECONDS
from tests.spark.conftest import RunAudit, archive_of_classes, audit

pytestmark = pytest.mark.spark

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for a JVM that ends before more would be of use
PET = Table("flvDb/pet", ["name", "owner", "birth", "last_vaccine"])


def environment(**changes: str) -> dict[str, str]:
    """This process's, with the connector's jars at hand.

    An archive of classes that is there is used, but none is made: that takes a JVM longer than an audit.
    """
    jars = ",".join(map(str, spark_connector_jars(version("pyspark"))))
    own = dict(os.environ) | {"CDC_SPARK_JARS": jars, "SPARK_LOCAL_IP": "127.0.0.1"}
    if not archive_of_classes().exists():
        own["CDC_CACHE"] = os.devnull  # below which nothing can be written
    return own | changes


def profiles(folder: Path, brokers: str, *, leader: str, follower: str) -> list[str]:
    """The options for two profiles in ``folder`` that read the topics ``leader`` and ``follower``."""
    options = []
    for side, topic, resource in (("leader", leader, "mysql-srv1"), ("follower", follower, "mysql-srv1-follower")):
        path = folder / f"{side}.toml"
        path.write_text(
            f'mysql_resource_name = "{resource}"\n[kafka]\nbootstrap_servers = "{brokers}"\ntopic = "{topic}"\n'
        )
        options += [f"--{side}", str(path)]
    return options


def published(kafka: Kafka, folder: Path, leader: Stream, follower: Stream) -> list[str]:
    """Both streams in topics of this test's own, and the options of an audit of them."""
    topics = [f"{own_name(folder)}-leader", f"{own_name(folder)}-follower"]
    for topic, stream in zip(topics, (leader, follower), strict=True):
        publish(kafka.bootstrap_servers, topic, stream.messages)
    options = profiles(folder, kafka.bootstrap_servers, leader=topics[0], follower=topics[1])
    return [*options, "--report", str(folder / "report")]


def reported(folder: Path) -> dict[str, Any]:
    """report.json, found to be as its schema says."""
    told: dict[str, Any] = json.loads((folder / "report/report.json").read_text())
    assert list(faults(told, SCHEMA)) == []
    return told


def test_no_drift(kafka: Kafka, tmp_path: Path) -> None:
    """In test_watch.test_the_watch_ends_with_its_jvm, of long runs, the connector is fetched first."""
    options = published(kafka, tmp_path, *tutorial())
    done = run("cdc-audit", *options, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no drift at sequence 8\n")
    told = reported(tmp_path)
    assert (told["verdict"], told["exit_status"], told["sequence"]) == ("no drift", 0, 8)
    assert told["leader"]["records"] == 9
    assert "a true copy of mysql-srv1 at the leader&#39;s sequence 8" in (tmp_path / "report/report.html").read_text()


@pytest.mark.long
def test_an_audit_archives_its_classes_for_the_next_one(kafka: Kafka, tmp_path: Path) -> None:
    """`make test` has test_a_jvm_maps_what_an_earlier_one_has_loaded."""
    options, own = published(kafka, tmp_path, *tutorial()), environment(CDC_CACHE=str(tmp_path / "cache"))
    for _ in range(2):
        done = run("cdc-audit", *options, env=own)
        assert (done.returncode, done.stderr) == (0, "")
        assert mapped(archive_of_classes(own))


def test_a_jvm_maps_what_an_earlier_one_has_loaded(tmp_path: Path) -> None:
    """A small program of Spark's, since what an audit loads takes twenty seconds to archive."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-launcher_*.jar")
    name, archive = "org.apache.spark.launcher.Main", tmp_path / "archives/this.jsa"
    program = ["-cp", str(jar), name, "org.apache.spark.deploy.SparkSubmit", "--version"]

    def run_java(*options: str) -> str:
        command = [require_java(os.environ), *options, "-Xlog:class+load", *program]
        settings = dict(os.environ) | {"SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_SCALA_VERSION": "2.13"}
        return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout

    with written(archive) as writing:
        assert f"{name} source: file:{jar}" in run_java(*writing)
    assert f"{name} source: shared objects file (top)" in run_java(*mapped(archive))


@pytest.mark.parametrize("drifted", [in_long_runs(False), True])
def test_topics_per_table_and_renamed_databases(
    kafka: Kafka, tmp_path: Path, drifted: bool, run_audit: RunAudit, spark: SparkSession
) -> None:
    """And what drift is told as: on the terminal, in report.json, and in a table of all rows; from landed messages."""
    leader, follower = tutorial()
    position = 200 * follower.sequence + 4
    if drifted:
        follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
    follower.messages[:] = [message.replace("/flvDb", "/copy%20of%20it") for message in follower.messages]
    if drifted:
        # The leader's database is not the one that the follower has under the same name.
        follower.transaction(Table("flvDb/pet", ["name"]).add(("Own",)))
    options = profiles(tmp_path, kafka.bootstrap_servers, leader="leader", follower="follower")
    for path, stream in zip(options[1::2], (leader, follower), strict=True):
        prefix = f"{own_name(tmp_path)}-{Path(path).stem}."
        text = Path(path).read_text().replace("[kafka]", f'[kafka]\nlayout = "per_table"\nprefix = "{prefix}"')
        Path(path).write_text(text.replace('topic = "', f'topic = "{own_name(tmp_path)}-'))
        publish_per_table(kafka.bootstrap_servers, load(Path(path)).kafka.topics(), stream.messages)
    with (tmp_path / "follower.toml").open("a") as file:
        file.write('[renames]\nflvDb = "copy of it"\n')
    landing = ("--from-lake", str(tmp_path / "landing")) if drifted else ()
    done = run_audit(*options, "--report", str(tmp_path / "report"), *landing)
    assert (done.returncode, done.stderr) == (int(drifted), ""), done.stdout
    assert done.stdout.startswith("drift at sequence 8\n" if drifted else "no drift at sequence 8\n")
    assert done.stdout.count("extra in ") == 2 * drifted
    told = reported(tmp_path)
    assert told["leader"]["records"] == 9
    assert f"{own_name(tmp_path)}-leader.flvDb_pet/1" in told["leader"]["offsets"]
    if drifted:
        require_ghost(done.stdout, told, position)
        rows = {
            row["database"]: row for row in spark.read.parquet((tmp_path / "report/drift.parquet").as_uri()).collect()
        }
        assert rows.keys() == {"flvDb", "flvDb of the follower"}
        assert (rows["flvDb"]["kind"], rows["flvDb"]["follower_image"]["name"]) == ("extra", '{"String":"Ghost"}')
        assert rows["flvDb"]["foreign"]["position"] == position


def require_ghost(output: str, told: dict[str, Any], position: int) -> None:
    """The row that somebody has written at this position of the follower's binlog, and one of a database that only the
    follower has, on the terminal and as JSON."""
    assert "extra in flvDb.pet: name='Ghost', owner='Nobody', birth='2000-01-01'\n" in output
    assert "extra in flvDb of the follower.pet: name='Own'" in output
    assert f"foreign write at binlog.000001:{position} on the follower: 1 row in flvDb.pet" in output
    assert told["drifted_by_cause"] == {"foreign write": 2}
    assert sum(writes for _, _, writes in told["foreign_over_time"]) == 2


def test_could_not_judge(kafka: Kafka, tmp_path: Path, run_audit: RunAudit, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = tutorial()
    del leader.messages[4]
    options = published(kafka, tmp_path, leader, follower)
    (tmp_path / "report/drift.parquet").mkdir(parents=True)
    (tmp_path / "report/report.json").write_text("an earlier audit's")
    monkeypatch.setenv("COLUMNS", "60")
    done = run_audit(*options)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("could not judge\n")
    assert "sequence 5 comes, but 4 does not" in " ".join(done.stdout.split())
    assert all(len(line) <= 60 for line in done.stdout.splitlines() if not line.startswith("report: "))
    assert reported(tmp_path)["exit_status"] == 2
    assert not (tmp_path / "report/drift.parquet").exists()


@pytest.mark.long
def test_spark_without_the_connector(kafka: Kafka, tmp_path: Path) -> None:
    """`make test` has test_no_drift."""
    options = published(kafka, tmp_path, *tutorial())
    settings = environment(PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", SPARK_SUBMIT_OPTS=QUICK)
    small = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command = ["spark-submit", *small, str(audit.__file__), *options]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 2, done.stderr
    # spark-submit gives a driver one stream for both, standard output.
    assert done.stdout.startswith("cdc-audit: [CDC-AUDIT-NO-CONNECTOR] Spark has no Kafka connector")
    assert done.stdout.count("\n") == 1
    assert f"--packages {kafka_connector(version('pyspark'))}" in done.stdout


def test_a_connector_that_cannot_be_fetched_is_no_verdict(kafka: Kafka, tmp_path: Path) -> None:
    options = published(kafka, tmp_path, *tutorial())
    (tmp_path / "spark-defaults.conf").write_text("spark.jars.ivySettings nowhere.xml\n")
    settings = environment(SPARK_CONF_DIR=str(tmp_path))
    del settings["CDC_SPARK_JARS"]
    done = run("cdc-audit", *options, env=settings)
    assert done.returncode == 2, done.stderr
    assert "nowhere.xml" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("cdc-audit: [CDC-SPARK-ENDED] Spark ended before the program did")


def test_no_jdk(tmp_path: Path) -> None:
    options = profiles(tmp_path, "127.0.0.1:9", leader="a", follower="b")
    bare = {"PATH": str(tmp_path)}
    assert "there is no Java" in refused("cdc-audit", *options, "--report", tmp_path, env=bare)
    assert "there is no Java" in refused(
        "cdc-audit", *options, "--report", tmp_path, env=bare | {"JAVA_HOME": str(tmp_path)}
    )


def test_java_that_is_too_old(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    options = profiles(tmp_path, "127.0.0.1:9", leader="a", follower="b")
    settings = {"PATH": f"{tmp_path}{os.pathsep}/bin"}
    assert "Java 11 is too old" in refused("cdc-audit", *options, "--report", tmp_path, env=settings)


def test_brokers_that_do_not_answer(tmp_path: Path) -> None:
    options = profiles(tmp_path, "127.0.0.1:9", leader="a", follower="b")
    assert "Kafka does not answer" in refused("cdc-audit", *options, "--report", tmp_path)


def test_topic_that_is_not_there(kafka: Kafka, tmp_path: Path) -> None:
    options = profiles(tmp_path, kafka.bootstrap_servers, leader="no-such-leader", follower="no-such-follower")
    assert "no such topic: no-such-leader" in refused("cdc-audit", *options, "--report", tmp_path)


def test_one_topic_for_both(tmp_path: Path) -> None:
    options = profiles(tmp_path, "127.0.0.1:9", leader="same", follower="same")
    assert "have the same topic: same" in refused("cdc-audit", *options, "--report", tmp_path)


def test_consumer_of_another_leader(tmp_path: Path) -> None:
    options = profiles(tmp_path, "127.0.0.1:9", leader="a", follower="b")
    (tmp_path / "consumer.toml").write_text('mysql_resource_name = "other"\n[kafka]\ntopic = "a"\n')
    line = refused("cdc-audit", *options, "--consumer", tmp_path / "consumer.toml", "--report", tmp_path)
    assert "the consumer's mysql_resource_name is other, the leader's mysql-srv1" in line


def test_profile_that_is_not_there(tmp_path: Path) -> None:
    options = ["--leader", "none.toml", "--follower", "none.toml", "--report", str(tmp_path)]
    assert "no such file: none.toml" in refused("cdc-audit", *options)


def test_report_that_cannot_be_written(kafka: Kafka, tmp_path: Path) -> None:
    options = published(kafka, tmp_path, *tutorial())
    (tmp_path / "report").write_text("a file")
    assert "cannot write the report" in refused("cdc-audit", *options, env=environment())
