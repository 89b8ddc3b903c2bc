"""A leader and a follower with all programs between them, and the audit of what both logged."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from cdc.profile import Profile, load
from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import MySql
from cdc.spark.audit import judge
from cdc.spark.brokers import Span
from cdc.spark.report import Audit
from cdc.spark.topics import FOLLOWER, LEADER, parse
from tests.programs import json_lines, run_well, write_profile
from tests.spark.streams import Stream, messages

__all__ = ["Pair"]


@dataclass(frozen=True)
class Pair:
    """The servers and the profiles of producer, consumer and capture; topics are called after ``name``."""

    leader: MySql
    follower: MySql
    source: Path
    target: Path
    capture: Path

    @classmethod
    def make(cls, folder: Path, leader: MySql, follower: MySql, kafka: Kafka, *, name: str, **tables: Any) -> Self:
        """``tables`` are merged over the tables of all profiles, or of the one they are named after."""
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
        """Run statements on the leader, in one session."""
        _run(self.leader, statements, database)

    def on_follower(self, *statements: str, database: str | None = None) -> None:
        """Run statements on the follower, in one session, past the consumer."""
        _run(self.follower, statements, database)

    def replicate(self, *options: str) -> str:
        """Everything that the leader has so far goes to the follower. Gives the consumer's log."""
        run_well("cdc-producer", self.source, "--until-current")
        return run_well("cdc-consumer", self.target, "--until-current", *options)

    def pass_over(self, *statements: str) -> None:
        """The leader runs statements that become one record, and the follower's checkpoint passes over it."""
        self.replicate()
        self.on_leader(*statements)
        run_well("cdc-producer", self.source, "--until-current")
        resource = load(self.target).mysql_resource_name
        self.on_follower(f"UPDATE cdc.checkpoint SET sequence = sequence + 1 WHERE resource = '{resource}'")

    def audit(self, spark: SparkSession, folder: Path) -> Audit:
        """Capture what the follower has logged, and judge."""
        run_well("cdc-producer", self.capture, "--until-current")
        paths = {LEADER: self.source, FOLLOWER: self.capture}
        profiles: dict[str, Profile] = {side: load(path) for side, path in paths.items()}
        streams = {side: Stream(messages=json_lines(path)) for side, path in paths.items()}
        spans = {side: Span({(side, 0): (0, len(stream.messages))}) for side, stream in streams.items()}
        records = parse(messages(spark, streams)).persist()
        try:
            return judge(spark, records, profiles, spans, folder)
        finally:
            spark.catalog.clearCache()


def _run(server: MySql, statements: tuple[str, ...], database: str | None) -> None:
    with server.root(database=database, charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
