"""A leader and a follower with all programs between them, and the audit of both logs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.pipeline import audit_topics
from cdc.spark.report.outcome import Audit
from cdc.spark.topics import Replication
from tests.harness.programs import run_well, write_profile

__all__ = ["Pair"]


@dataclass(frozen=True)
class Pair:
    """The servers and the profiles of producer, consumer and capture; topics are named after ``name``."""

    leader: MySql
    follower: MySql
    source: Path
    target: Path
    capture: Path

    @classmethod
    def make(cls, folder: Path, leader: MySql, follower: MySql, kafka: Kafka, *, name: str, **tables: Any) -> Self:
        """Makes a pair; ``tables`` are merged over the tables of all profiles, or of the one they are named after."""
        own = {each: tables.pop(each, {}) for each in ("source", "target", "capture")}
        theirs = {"resource": f"{name}-follower", "topic": f"{name}-follower"}
        ours = {"resource": name, "topic": name}
        return cls(
            leader,
            follower,
            write_profile(folder, leader, kafka, name=f"{name}-source", **ours, **tables, **own["source"]),
            write_profile(folder, follower, kafka, name=f"{name}-target", **ours, **tables, **own["target"]),
            write_profile(folder, follower, kafka, name=f"{name}-capture", **theirs, **tables, **own["capture"]),
        )

    def on_leader(self, *statements: str, database: str | None = None) -> None:
        """Runs statements on the leader, in one session."""
        _run(self.leader, statements, database)

    def on_follower(self, *statements: str, database: str | None = None) -> None:
        """Runs statements on the follower, in one session, without the consumer."""
        _run(self.follower, statements, database)

    def replicate(self, *options: str) -> str:
        """Replicates everything that the leader has so far. Returns the consumer's log."""
        run_well("cdc-producer", self.source, "--until-current")
        return run_well("cdc-consumer", self.target, "--until-current", *options)

    def pass_over(self, *statements: str, database: str | None = None) -> None:
        """Runs statements of one record each on the leader, and moves the follower's checkpoint past them."""
        self.replicate()
        self.on_leader(*statements, database=database)
        run_well("cdc-producer", self.source, "--until-current")
        resource = load(self.target).mysql_resource_name
        moved = f"sequence = sequence + {len(statements)}, leader_file = NULL WHERE resource = '{resource}'"
        self.on_follower(f"UPDATE cdc.checkpoint SET {moved}")

    def audit(self, spark: SparkSession, folder: Path, *, consumer: bool = False) -> Audit:
        """Audits both logs so far, with or without the consumer's profile."""
        for profile in (self.source, self.capture):
            run_well("cdc-producer", profile, "--until-current")
        profiles = {LEADER: load(self.source), FOLLOWER: load(self.capture)}
        return audit_topics(spark, Replication(profiles, load(self.target) if consumer else None), folder)


def _run(server: MySql, statements: tuple[str, ...], database: str | None) -> None:
    with server.root(database=database, charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
