"""One Spark for all tests of this folder, and the judge on streams that a test made by hand."""

import gc
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from pyspark.sql import SparkSession

from cdc.config.filters import Filters
from cdc.config.profile import Kafka, Profile
from cdc.lake import program as cdc_lake
from cdc.lake.__main__ import main as lake_main
from cdc.lake.formats.delta import DeltaTables
from cdc.lake.formats.iceberg import IcebergTables
from cdc.sandbox.fetch.jars import lake_jars, spark_connector_jars
from cdc.sandbox.server.kafka import Kafka as Broker
from cdc.sandbox.server.mysql import MySql
from cdc.service.java import require_java
from cdc.service.spark_packages import lake_packages
from cdc.spark import __main__ as cdc_audit
from cdc.spark.input.records import FOLLOWER, LEADER, parse
from cdc.spark.input.renaming import own_schema, renames, with_leaders_names
from cdc.spark.input.small_data import set_tiny, uncache
from cdc.spark.input.spans import Span
from cdc.spark.input.sql_meaning import MEANING
from cdc.spark.job.launch import class_archive, mapped
from cdc.spark.job.options import NO_TERMS, Terms
from cdc.spark.job.session import CODE_CACHE, NO_TRACES
from cdc.spark.lag import SCHEMA
from cdc.spark.pipeline import judge
from cdc.spark.private_names import look_up_once
from cdc.spark.report.files import clear
from cdc.spark.report.outcome import Audit
from cdc.spark.topics import Replication, Topics
from tests.generators.frames import frame_of
from tests.generators.streams import Stream, messages
from tests.harness.hdfs import hdfs
from tests.harness.pair import Pair
from tests.harness.server_fixtures import started

# Its name in the package is that of a function.
audit = import_module("cdc.spark.audit")
Judge = Callable[..., Audit]
RunInSpark = Callable[[str], int]
RunAudit = Callable[..., "subprocess.CompletedProcess[str]"]

# Hundreds of small audits one after the other outgrow the JVM's defaults for compiled code and for classes: what no
# longer fits is removed, and compiled and loaded again. They are so many that the second compiler, too, saves more than
# it costs, but with its defaults it takes a third of all CPU time, mostly for methods that hardly run again: here it
# waits five times as long before it compiles a method, and inlines less.
_JVM = (
    "+UseSerialGC", "ReservedCodeCacheSize=256m", "MetaspaceSize=512m", "NewSize=768m",
    "InlineSmallCode=1000", "MaxInlineLevel=9",
    "Tier4InvocationThreshold=25000", "Tier4MinInvocationThreshold=3000", "Tier4CompileThreshold=75000",
    "Tier4BackEdgeThreshold=200000",
)  # fmt: skip
_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    **MEANING,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    **dict([CODE_CACHE]),
    **NO_TRACES,
}
_EXTENSIONS = "spark.sql.extensions"
_TABLES = {"delta": DeltaTables, "iceberg": IcebergTables}


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the sockets it fetched results through to the garbage collector; that is no fault of ours.

    With several workers, one of them runs all tests that need the Spark session: each JVM first takes a minute of CPU
    time to load and compile what the others have, too.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            if "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(autouse=True)
def _sockets_collected() -> Iterator[None]:
    # Here, where the warning is expected, not in a test of another folder where it would be an error.
    yield
    gc.collect()


def archive_of_classes(environment: Mapping[str, str] = os.environ) -> Path:
    """Where an audit on this machine keeps the classes that it loads."""
    jars = spark_connector_jars(version("pyspark"))
    return class_archive(environment, java=require_java(environment), home=Path(pyspark.__file__).parent, jars=jars)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark with the settings of a small audit."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of data sources in Python
    builder = SparkSession.builder.master("local[2]").config(map=_SPARK)
    java = [*(f"-XX:{option}" for option in _JVM), *mapped(archive_of_classes())]
    builder = builder.config("spark.driver.extraJavaOptions", " ".join(f'"{option}"' for option in java))
    # As cdc-audit has it: what is on the class path is in the archive.
    connector = os.pathsep.join(map(str, spark_connector_jars(version("pyspark"))))
    builder = builder.config("spark.driver.extraClassPath", connector)
    builder = builder.config("spark.jars", ",".join(map(str, lake_jars(version("pyspark")))))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    look_up_once(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lake_spark(spark: SparkSession) -> SparkSession:
    """A session of the same Spark with Delta and Iceberg, as cdc-lake has it.

    Their extensions look through each plan of a session that has them: a tenth of an audit's CPU time, and no audit of
    our users has them.
    """
    there = [_TABLES[form] for form in lake_packages(version("pyspark"))]
    settings = DeltaTables.settings | {_EXTENSIONS: ",".join(each.settings[_EXTENSIONS] for each in there)}
    context, jvm = spark.sparkContext, spark._jvm
    assert jvm is not None
    # A session takes its extensions from the settings of the context that it begins in.
    shared = context._jsc.sc().conf()
    shared.set(_EXTENSIONS, settings[_EXTENSIONS])
    try:
        made = getattr(jvm, "org.apache.spark.sql.classic.SparkSession")(context._jsc.sc(), settings)
        made.sessionState()  # which is made when it is first asked for
    finally:
        shared.remove(_EXTENSIONS)
    return SparkSession(context, made)


@pytest.fixture
def judged(spark: SparkSession, tmp_path: Path) -> Judge:
    """``judged(leader, follower)``: the audit of two streams; ``filters`` are the follower profile's,
    ``leader_filters`` the leader's.

    ``arrived`` says when sequences were in Kafka: (side, since, upto, at_us). ``folded``: all rows are folded, as for a
    state, whatever digests tell. ``consumer`` is the consumer's profile, ``terms`` what the verdict is held to.
    """

    def run(
        leader: Stream,
        follower: Stream,
        *,
        filters: Filters | None = None,
        leader_filters: Filters | None = None,
        arrived: Sequence[tuple[str, int, int, int]] = (),
        folded: bool = False,
        consumer: Profile | None = None,
        terms: Terms = NO_TERMS,
    ) -> Audit:
        profiles = {
            LEADER: Profile(filters=leader_filters or Filters()),
            FOLLOWER: Profile(
                mysql_resource_name="mysql-srv1-follower", kafka=Kafka(topic="follower"), filters=filters or Filters()
            ),
        }
        sides = {LEADER: leader, FOLLOWER: follower}
        spans = {side: Span({(profiles[side].kafka.topic, 0): (0, len(sides[side].messages))}) for side in sides}
        set_tiny(spark, records=sum(span.size for span in spans.values()))
        names = {"renames": renames(profiles, consumer), "schema": own_schema(profiles, consumer)}
        records = with_leaders_names(parse(messages(spark, sides)), **names).persist()
        try:
            arrivals = frame_of(spark, [(*each, at) for at, each in enumerate(arrived)], SCHEMA)
            clear(tmp_path)
            topics = Topics(records, arrivals, spans)
            return judge(topics, Replication(profiles, consumer), tmp_path, terms, for_state=folded).audit
        finally:
            records.unpersist()
            uncache(spark)

    return run


@pytest.fixture
def run_in_spark(
    spark: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunInSpark]:
    """``run_in_spark("cdc-audit …")``: the exit status of a program, or of spark-submit with the audit.

    It is what users run up to the start of a JVM: from there on it has the Spark that the tests share.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    umask = os.umask(0)
    os.umask(umask)
    jvm = nullcontext((SimpleNamespace(require_started=lambda: None), lambda _: None))
    monkeypatch.setattr(cdc_audit, "launched", lambda *_, **__: jvm)
    monkeypatch.setattr(cdc_lake, "started", lambda *_: request.getfixturevalue("lake_spark"))
    monkeypatch.setattr(audit, "session", lambda: spark)
    for program in (audit, cdc_lake):
        monkeypatch.setattr(program, "stop", lambda _: None)
    mains = {"cdc-audit": cdc_audit.main, "cdc-lake": lake_main, "spark-submit": audit.main}

    def run(command: str) -> int:
        program, *arguments = shlex.split(command)
        if program == "spark-submit":
            arguments = arguments[arguments.index("cdc/spark/audit.py") + 1 :]
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        try:
            return mains[program]()
        finally:
            os.umask(umask)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            uncache(spark)
            spark.sparkContext.setLogLevel("ERROR")  # which is off once jobs were cancelled

    yield run


@pytest.fixture
def run_audit(
    run_in_spark: RunInSpark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunAudit:
    """``run_audit(*options)``: what spark-submit runs for ``cdc-audit``, on the session that the tests share."""
    monkeypatch.setenv("COLUMNS", "1000")  # the terminal's own, in which lines are wrapped

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        capsys.readouterr()
        status = run_in_spark(shlex.join(["spark-submit", "cdc/spark/audit.py", *options]))
        return subprocess.CompletedProcess(options, status, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an HDFS."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as (address, _):
        assert address.startswith("hdfs://")
        yield address


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MySql, MySql]]:
    """A leader and a follower whose binlogs hold only what the tests of this folder did, from their beginning."""
    folders = [tmp_path_factory.mktemp(name) for name in ("leader", "follower")]
    with started(folders[0], server_id=1) as leader, started(folders[1], server_id=2) as follower:
        yield leader, follower


@pytest.fixture
def pair(tmp_path: Path, servers: tuple[MySql, MySql], kafka: Broker, request: pytest.FixtureRequest) -> Pair:
    """Both servers with an empty database that is called as the test is."""
    name = request.node.originalname[5:45]
    filters = {"include_dbs": [f"{name}*"]}
    made = Pair.make(
        tmp_path, *servers, kafka, name=name, source={"filters": filters},
        capture={"filters": {"include_dbs": [f"{name}*", "cdc"]}},
    )  # fmt: skip
    made.on_leader(f"CREATE DATABASE {name}")
    return made
