"""The audit as users run it, on topics in a real Kafka: what it prints and writes, and how it ends."""

import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.job.launch import mapped
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
    """This process's, with the connector's jars at hand."""
    jars = ",".join(map(str, spark_connector_jars(version("pyspark"))))
    return dict(os.environ) | {"CDC_SPARK_JARS": jars, "SPARK_LOCAL_IP": "127.0.0.1"} | changes


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
    """And the classes are archived for the next audit. Where the connector has to be fetched first, see
    test_watch.test_the_watch_ends_with_its_jvm."""
    options = published(kafka, tmp_path, *tutorial())
    done = run("cdc-audit", *options, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert mapped(archive_of_classes())
    assert done.stdout.startswith("no drift at sequence 8\n")
    told = reported(tmp_path)
    assert (told["verdict"], told["exit_status"], told["sequence"]) == ("no drift", 0, 8)
    assert told["leader"]["records"] == 9
    assert "a true copy of mysql-srv1 at the leader&#39;s sequence 8" in (tmp_path / "report/report.html").read_text()


@pytest.mark.parametrize("drifted", [in_long_runs(False), True])
def test_topics_per_table(
    kafka: Kafka, tmp_path: Path, drifted: bool, run_audit: RunAudit, spark: SparkSession
) -> None:
    """And what drift is told as: on the terminal, in report.json, and in a table of all rows."""
    leader, follower = tutorial()
    if drifted:
        follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
    options = profiles(tmp_path, kafka.bootstrap_servers, leader="leader", follower="follower")
    for path, stream in zip(options[1::2], (leader, follower), strict=True):
        prefix = f"{own_name(tmp_path)}-{Path(path).stem}."
        text = Path(path).read_text().replace("[kafka]", f'[kafka]\nlayout = "per_table"\nprefix = "{prefix}"')
        Path(path).write_text(text.replace('topic = "', f'topic = "{own_name(tmp_path)}-'))
        publish_per_table(kafka.bootstrap_servers, load(Path(path)).kafka.topics(), stream.messages)
    done = run_audit(*options, "--report", str(tmp_path / "report"))
    assert (done.returncode, done.stderr) == (int(drifted), ""), done.stdout
    assert done.stdout.startswith("drift at sequence 8\n" if drifted else "no drift at sequence 8\n")
    assert ("name='Ghost'" in done.stdout) == drifted
    told = reported(tmp_path)
    assert told["leader"]["records"] == 9
    assert f"{own_name(tmp_path)}-leader.flvDb_pet/1" in told["leader"]["offsets"]
    if drifted:
        require_ghost(done.stdout, told, 200 * (follower.sequence - 1) + 4)
        (row,) = spark.read.parquet((tmp_path / "report/drift.parquet").as_uri()).collect()
        assert (row["kind"], row["follower_image"]["name"]) == ("extra", '{"String":"Ghost"}')
        assert row["foreign"]["position"] == 200 * (follower.sequence - 1) + 4


def require_ghost(output: str, told: dict[str, Any], position: int) -> None:
    """The one row that somebody has written at this position of the follower's binlog, on the terminal and as JSON."""
    assert "extra in flvDb.pet: name='Ghost', owner='Nobody', birth='2000-01-01'\n" in output
    assert f"foreign write at binlog.000001:{position} on the follower: 1 row in flvDb.pet" in output
    assert (told["drifted_by_cause"], told["foreign_over_time"][0][2]) == ({"foreign write": 1}, 1)


@pytest.mark.parametrize("drifted", [in_long_runs(False), True])
def test_a_follower_with_renamed_databases(kafka: Kafka, tmp_path: Path, drifted: bool, run_audit: RunAudit) -> None:
    leader, follower = tutorial()
    if drifted:
        follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
    follower.messages[:] = [message.replace("/flvDb", "/copy%20of%20it") for message in follower.messages]
    # The leader's database is not the one that the follower has under the same name.
    follower.transaction(Table("flvDb/pet", ["name"]).add(("Own",)))
    options = published(kafka, tmp_path, leader, follower)
    profile = tmp_path / "follower.toml"
    profile.write_text(profile.read_text() + '[renames]\nflvDb = "copy of it"\n')
    done = run_audit(*options)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert "extra in flvDb of the follower.pet: name='Own'" in done.stdout
    assert ("extra in flvDb.pet: name='Ghost', owner='Nobody', birth='2000-01-01'" in done.stdout) == drifted
    assert done.stdout.count("extra in ") == 1 + drifted


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


def test_spark_without_the_connector(kafka: Kafka, tmp_path: Path) -> None:
    options = published(kafka, tmp_path, *tutorial())
    settings = environment(PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", SPARK_SUBMIT_OPTS=QUICK)
    small = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command = ["spark-submit", *small, str(audit.__file__), *options]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 2, done.stderr
    # spark-submit gives a driver one stream for both, standard output.
    assert done.stdout.startswith("cdc-audit: [CDC-AUDIT-NO-CONNECTOR] Spark has no Kafka connector")
    assert done.stdout.count("\n") == 1
    assert f"--packages org.apache.spark:spark-sql-kafka-0-10_2.13:{version('pyspark')}" in done.stdout


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
