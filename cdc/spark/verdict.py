"""Runs an audit on the caller's Spark session, for notebooks and schedulers, and returns its verdict."""

from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from pyspark.sql import DataFrame, SparkSession

from cdc.errors import UserError
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import local_frame
from cdc.spark.input.sql_meaning import with_meaning
from cdc.spark.job.options import Terms, accepted_drift, consumer_profile, side_profiles
from cdc.spark.pipeline import audit_topics
from cdc.spark.private_names import another_session, by_connect, close_session
from cdc.spark.report.files import FOREIGN, PARQUET, clear, repair_command
from cdc.spark.report.outcome import Audit
from cdc.spark.report.row_files import read_rows
from cdc.spark.state.coverage import identity
from cdc.spark.state.landing import Landing
from cdc.spark.state.store import StateStore
from cdc.spark.topics import Replication

__all__ = ["Verdict", "audit"]

_OF_JVM = ("state", "from_lake")  # options that need Hadoop's file systems, which only the JVM has

_TABLES = (
    "database STRING, table STRING, leader_rows BIGINT, follower_rows BIGINT, missing BIGINT, extra BIGINT, "
    "different BIGINT, leader_checksum STRING, follower_checksum STRING, not_compared BIGINT, older BOOLEAN, "
    "accepted BIGINT"
)
_PLACE = "STRUCT<sequence: BIGINT, file: STRING, position: BIGINT>"
_WRITE = "STRUCT<sequence: BIGINT, file: STRING, position: BIGINT, transaction: STRING, ts_us: BIGINT>"
_DRIFT = (
    "database STRING, table STRING, kind STRING, rows BIGINT, keyed BOOLEAN, identity MAP<STRING, STRING>, "
    "columns ARRAY<STRING>, leader_image MAP<STRING, STRING>, follower_image MAP<STRING, STRING>, "
    f"leader_last {_PLACE}, follower_last {_PLACE}, foreign {_WRITE}, cause STRING, evidence STRING, accepted INT"
)
_FOREIGN = (
    "transaction STRING, sequence BIGINT, file STRING, position BIGINT, committed_at TIMESTAMP, tables ARRAY<STRING>, "
    "rows BIGINT, statement STRING"
)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Verdict:
    """The result of an audit. ``outcome`` contains everything that is in report.json, and ``report`` is the folder with
    the report.

    The DataFrames ``tables``, ``drift`` and ``foreign`` read the files of the report. If the caller named no folder for
    the report, the files exist only as long as this object.
    """

    outcome: Audit
    report: Path
    _spark: SparkSession = field(repr=False)

    def __str__(self) -> str:
        return self.outcome.verdict

    @property
    def exit_status(self) -> int:
        """The exit status of cdc-audit: 0 no drift, 1 drift, 2 could not judge."""
        return self.outcome.exit_status

    @property
    def reasons(self) -> list[str]:
        """The reasons why the audit could not judge; empty if it reached a verdict."""
        return self.outcome.why

    @property
    def tables(self) -> DataFrame:
        """One row for each table that was compared: its number of rows on both sides, and how many of them differ."""
        return local_frame(self._spark, [asdict(each) for each in self.outcome.tables], _TABLES)

    @property
    def drift(self) -> DataFrame:
        """All rows that differ, as in drift.parquet."""
        return read_rows(self._spark, self.report, PARQUET, _DRIFT)

    @property
    def foreign(self) -> DataFrame:
        """All transactions of the follower that clients other than the consumer committed, as in foreign.parquet."""
        return read_rows(self._spark, self.report, FOREIGN, _FOREIGN)


def audit(
    spark: SparkSession,
    leader: str | Path,
    follower: str | Path,
    *,
    consumer: str | Path | None = None,
    report: str | Path | None = None,
    **options: Any,
) -> Verdict:
    """Compares the follower with the leader according to both topics, as cdc-audit does.

    ``leader`` and ``follower`` are the profiles of both cdc-producers; ``consumer`` is the profile of the follower's
    cdc-consumer, whose filters and renames apply. ``report`` is the folder for the report; by default it is a temporary
    folder. Executors must share it with this process, but not over Spark Connect. ``options`` are options of cdc-audit:
    ``state`` and ``from_lake`` (each a path or a URI), ``accept`` (a path), ``max_age`` (seconds) and ``exact``. The
    session keeps its settings and its cached data.

    Raises UserError for a mistake in a profile or an option, for an option that a session of Spark Connect can't have,
    and if brokers do not answer.
    """
    terms = _terms(options)
    if by_connect(spark) and (lacking := [name for name in _OF_JVM if options.get(name)]):
        raise UserError(
            f"over Spark Connect an audit has no option {' or '.join(lacking)}",
            code="CDC-SPARK-CONNECT-AUDIT",
            hint="leave it out, to read the topics from their beginning; or run cdc-audit beside Spark's driver",
        )
    given = Namespace(leader=Path(leader), follower=Path(follower), consumer=consumer and Path(consumer))
    profiles = dict(zip((LEADER, FOLLOWER), side_profiles(given), strict=True))
    applied = consumer_profile(given)
    folder = Path(report or mkdtemp(prefix="cdc-audit-")).absolute()
    try:
        with ExitStack() as opened:
            own = another_session(spark)
            opened.callback(close_session, own)
            with_meaning(own)
            state, landing = _kept(own, opened, options, identity(profiles, applied))
            clear(folder)
            repair = "" if report is None else repair_command(given.leader, folder)
            outcome = audit_topics(
                own, Replication(profiles, applied), folder, state, landing=landing, terms=terms, repair=repair
            )
            verdict = Verdict(outcome, folder, spark)
    except BaseException:
        if report is None:
            rmtree(folder, ignore_errors=True)
        raise
    if report is None:
        finalize(verdict, rmtree, folder)
    return verdict


def _kept(
    spark: SparkSession, opened: ExitStack, options: Mapping[str, Any], of: dict[str, Any]
) -> tuple[StateStore | None, Landing | None]:
    """Opens the state ``of`` these topics and the landed messages that the options name, until ``opened`` ends."""
    state = landing = None
    if kept := options.get("state"):
        state = opened.enter_context(closing(StateStore.open(spark, kept, of)))
    if landed := options.get("from_lake"):
        landing = opened.enter_context(closing(Landing.open(spark, landed)))
    return state, landing


def _terms(options: Mapping[str, Any]) -> Terms:
    """Returns the conditions of the verdict. Raises TypeError for an unknown option, and UserError for a bad file."""
    if unknown := options.keys() - {"state", "from_lake", "accept", "max_age", "exact"}:
        raise TypeError(f"audit() got an unexpected option: {', '.join(sorted(unknown))}")
    accepted = accepted_drift(Path(options["accept"])) if options.get("accept") else ()
    return Terms(options.get("max_age"), bool(options.get("exact")), accepted)
