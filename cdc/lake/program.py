"""Runs cdc-lake once, or repeatedly until a signal, according to its command line."""

import argparse
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.config.profile import KAFKA_ONLY, Profile, load
from cdc.errors import CdcError, UserError
from cdc.lake.catalog_file import CatalogFile, load_catalog
from cdc.lake.change_tables import ChangeTables
from cdc.lake.folder import LakeFolder
from cdc.lake.formats.delta import DeltaTables
from cdc.lake.formats.iceberg import IcebergTables
from cdc.lake.formats.iceberg_catalog import CatalogGone, SharedCatalog
from cdc.lake.formats.parquet import ParquetTables
from cdc.lake.options import Selection, parse_options, value_options
from cdc.lake.pipeline import Copying, Lake, Refused, Run, refused_run
from cdc.model.values import visible
from cdc.service.command_line import CheckList
from cdc.service.http_endpoint import Check, Endpoint
from cdc.service.java import require_java_for_spark
from cdc.service.logs import LastLine, event, print_error, setup_logging
from cdc.service.monitor import info
from cdc.service.process import print_line, printed, stop_on_signals
from cdc.spark.folders import Folder, LocalFolder
from cdc.spark.frames.history import Moment
from cdc.spark.frames.messages import Source
from cdc.spark.hadoop_folder import HadoopFolder
from cdc.spark.job import session
from cdc.spark.job.check import check_folder, check_runtime, check_spark_topics
from cdc.spark.job.launch import FOR_MUCH
from cdc.spark.job.output import root_cause
from cdc.spark.job.session import SparkGone, stop

__all__ = ["FORMATS", "Following", "identity", "run", "started"]

FORMATS: dict[str, type[DeltaTables] | type[IcebergTables] | type[ParquetTables]] = {
    "delta": DeltaTables, "iceberg": IcebergTables, "parquet": ParquetTables,
}  # fmt: skip
_LOG = logging.getLogger("cdc.lake")
_MEMORY = "run cdc-lake again, which continues; if its memory ran out, give it more (docs/lake.md#memory)"


def run(arguments: Sequence[str]) -> int:
    """Runs the program; returns the exit status. Raises UserError, PromiseError or ServerGone."""
    options = parse_options(arguments)
    try:
        return _run(options)
    except (PySparkException, Py4JError) as error:
        print_error("cdc-lake", f"Spark failed: {type(error).__name__}: {root_cause(error)[:500]}")
        return 2
    # This error means that the connection to the JVM is lost, since no other connection of this process uses Python's
    # sockets.
    except ConnectionError as error:
        raise SparkGone("Spark's JVM has ended", code="CDC-LAKE-SPARK-ENDED", hint=_MEMORY) from error
    except OSError as error:
        hint = "make sure that the folder exists and can be written to, then run cdc-lake again, which continues"
        raise UserError(
            f"cannot use the folder: {error}", code="CDC-LAKE-FOLDER", where=f"option --to {options.to}", hint=hint
        ) from None


def started(environment: Mapping[str, str], form: str, settings: Mapping[str, str]) -> SparkSession:
    """Starts Spark with the connectors for Kafka and for the lake's format ``form``; ``settings`` are the Spark
    settings of the format.
    """
    # The function ``session``, which an audit uses, would make the files private. But this process's umask should
    # decide which users may read the lake's files, as it does for the files of any program.
    mask = os.umask(0)
    os.umask(mask)
    own = {"spark.hadoop.fs.permissions.umask-mode": f"{mask:03o}", "spark.sql.adaptive.enabled": "true"}
    return session.started(environment, "cdc-lake", lake=form, settings={**own, **settings}, java=FOR_MUCH)


def _check(options: argparse.Namespace) -> int:
    """Prints what must be changed before a lake with these ``options`` can be written; returns the exit status."""
    items = CheckList()
    check_runtime(items, os.environ, lake=options.format)
    check_folder(items, options.to, option="--to")
    with items.noting():
        Selection(options)
        if options.catalog is not None:
            items.note(f"the catalog {load_catalog(options.catalog).uri} is not checked: only Spark can reach it")
        check_spark_topics(items, load(options.profile, servers=KAFKA_ONLY))
    return items.end()


def _run(options: argparse.Namespace) -> int:
    if options.check:
        return _check(options)
    profile, selects, values = load(options.profile, servers=KAFKA_ONLY), Selection(options), value_options(options)
    catalog = None if options.catalog is None else load_catalog(options.catalog)

    def source_in(spark: SparkSession) -> Source:
        source = Source.of(spark, profile)
        selects.folds_names = source.folds_names
        return source

    last_line = setup_logging(level=profile.log.level, form=profile.log.format)
    require_java_for_spark(os.environ)
    form = FORMATS[options.format]
    spark = None if isinstance(options.to, Path) else started(os.environ, options.format, form.settings)
    own = identity(profile, options.format, history=options.history, catalog=catalog)
    folder = LakeFolder(_place(spark, options.to), own)
    stop_signal = stop_on_signals()
    try:
        folder.identifier = None if catalog is None else catalog.identifier
        state = folder.load()
        spark = spark or started(os.environ, options.format, form.settings)
        shared = None if catalog is None else SharedCatalog(spark, catalog, folder.owner())
        tables = form(spark, folder.folder) if shared is None else IcebergTables(spark, folder.folder, shared)
        lake = Lake(folder, tables, profile, values, selects, state, _shown(last_line), catalog=shared)
        if options.change_feed and isinstance(tables, DeltaTables):
            tables.change_feed, lake.prepare = True, tables.begin_feed
        if options.history:
            lake.changes = ChangeTables(tables, selects)
        if options.follow:
            following = Following(
                lambda: source_in(spark), lake, interval=options.interval, info=info("cdc-lake", profile),
                maintain=options.maintain and options.maintain * 3600,
            )  # fmt: skip
            status = following.run(stop_signal, listen=options.metrics)
        else:
            source = partial(source_in, session.cancelling(spark, stop_signal))
            status = _once(lake, source, options.at, stop_signal, last_line)
        stop(spark)
        return status
    finally:
        folder.close()


def _place(spark: SparkSession | None, to: Path | str) -> Folder:
    """Returns the folder at the path or address ``to``; an address needs ``spark``. Raises OSError if Hadoop does not
    know the scheme of the address.
    """
    if isinstance(to, Path):
        return LocalFolder(to.resolve())
    assert spark is not None
    return HadoopFolder(spark, to)


def _once(
    lake: Lake, source: Callable[[], Source], at: Moment, stop_signal: threading.Event, last_line: LastLine | None
) -> int:
    """Advances the lake, and prints the result. Raises UserError if a signal stopped the run."""
    begun = time.monotonic()

    def done(run: Run) -> int:
        if last_line:
            last_line.show("")
        return printed([run.line(time.monotonic() - begun)], program="cdc-lake")

    try:
        return done(lake.advance(source(), at))
    except Refused as error:
        done(error.run)
        raise
    except (CdcError, PySparkException, Py4JError):
        if not stop_signal.is_set():
            raise
        raise UserError(
            "stopped before all tables were written", code="CDC-LAKE-STOPPED", hint="run cdc-lake again: it continues"
        ) from None  # Spark's own error reports only that its job was cancelled


def _shown(last_line: LastLine | None) -> Callable[[str, str], None]:
    """Returns a function that shows on the terminal which table is being written."""

    def passed(point: str, table: str) -> None:
        if last_line:
            last_line.show(f"writing {table}" if point == "before" else "")

    return passed


def identity(
    profile: Profile, form: str, *, history: bool = False, catalog: CatalogFile | None = None
) -> dict[str, str]:
    """Returns the identity of the lake. A folder that contains a lake with a different identity is refused."""
    names, of_catalog = profile.kafka.topics(), {} if catalog is None else {"catalog": catalog.identity()}
    return {"format": form, "resource": profile.mysql_resource_name, "topic": profile.kafka.topic,
            "layout": names.layout, "prefix": profile.kafka.prefix, "history": "yes" if history else "no",
            **of_catalog}  # fmt: skip


# Lets a lake follow its topics until a signal: repeats runs, logs a line for each run, and serves metrics of the newest
# run.

# /healthz fails if no run has ended for this many seconds, plus the interval, plus the duration of the last run
_LATE = 60.0


class Following:
    """Runs ``lake`` repeatedly; ``source`` reads the topics up to their present ends. ``info`` has the labels of
    ``cdc_info``. The tables are maintained each ``maintain`` seconds; never if that is None.

    The threads of the HTTP endpoint only read this object.
    """

    def __init__(
        self, source: Callable[[], Source], lake: Lake, *, interval: float, info: Mapping[str, str],
        maintain: float | None = None,
    ) -> None:  # fmt: skip
        self._source, self._lake, self._interval, self._info = source, lake, interval, info
        self._maintain, self._maintained_at, self._maintains = maintain, time.monotonic(), False
        self._newest: Run | None = None
        self._checked_at, self._seconds, self._waits, self._gone = time.time(), 0.0, "", False

    def run(self, stop: threading.Event, *, listen: tuple[str, int] | None) -> int:
        """Runs the lake until ``stop`` is set, and returns the exit status.

        Raises the errors of a run, but waits while tables are being copied into the stream, and while the lake's
        catalog does not answer. If tables are refused, the lake continues with the other tables; Refused is raised at
        the end if tables are still refused.
        """
        endpoint = (
            Endpoint.open(*listen, metrics=self._metrics, checks=self._checks, info=self._info) if listen else None
        )
        try:
            while not stop.is_set():
                begun = time.monotonic()
                if self._once():
                    self._maintain_when_due(stop)
                    self._checked_at = time.time()
                stop.wait(max(0.0, self._interval - (time.monotonic() - begun)))
            if self._newest is not None and self._newest.refused:
                raise refused_run(self._newest)
            return 0
        finally:
            if endpoint is not None:
                endpoint.close()

    def _once(self) -> bool:
        """Runs the lake if there are new records; returns false if its catalog does not answer."""
        begun, source = time.monotonic(), self._source()
        if self._newest is not None and source.newest == self._newest.sequence:
            return True
        try:
            self._newest = self._lake.advance(source)
        except CatalogGone as error:
            if not self._gone:
                event(_LOG, "waits for the catalog", level=logging.ERROR, error=error)
            self._gone = True
            return False
        except Copying as error:
            if str(error) != self._waits:
                print_line(visible(f"{_now()} waits: {error.what}"))
            self._waits = str(error)
            return True
        except Refused as error:  # the run itself has logged the reason
            self._newest = error.run
        self._waits, self._gone, self._seconds = "", False, time.monotonic() - begun
        print_line(visible(f"{_now()} {self._newest.line(self._seconds)}"))
        return True

    def _maintain_when_due(self, stop: threading.Event) -> None:
        begun = time.monotonic()
        if self._maintain is None or begun - self._maintained_at < self._maintain or stop.is_set():
            return
        self._maintains = True
        try:
            self._lake.maintain(stop.is_set)
            print_line(f"{_now()} maintained in {time.monotonic() - begun:.1f} s")
        except (UserError, CatalogGone, PySparkException, Py4JError) as error:
            # The tables are as they were. The next run comes first, and this is tried again after the same time.
            event(_LOG, "not maintained", level=logging.ERROR, error=error)
        finally:
            self._maintains, self._maintained_at = False, time.monotonic()

    def _checks(self) -> Iterator[Check]:
        age = time.time() - self._checked_at
        if self._newest is None and not self._waits and not self._gone:
            # The first run reads the whole stream, which may take hours, so its duration has no limit here. If the run
            # fails, the program ends.
            yield Check("runs", True, f"the first one began {age:.0f} s ago")
            return
        if self._newest is not None:
            refused = len(self._newest.refused)
            yield Check("tables", not refused, f"{refused} are refused", of_servers=False)
        is_on_time = self._maintains or age < _LATE + self._interval + self._seconds
        yield Check("runs", is_on_time, f"the last one ended {age:.0f} s ago")

    def _metrics(self) -> Iterator[Metric]:
        run = self._newest
        yield _gauge("waiting", "1 while a copy of tables into the stream is not complete.", bool(self._waits))
        if run is None:
            return
        yield _gauge("sequence", "The leader's sequence that all tables have reached.", run.sequence)
        yield _gauge("duration_seconds", "How long the newest run took.", self._seconds)
        yield _gauge("records", "Records that the newest run read.", run.records)
        if run.ts_us is not None:
            yield _gauge("committed_timestamp_seconds", "When the leader committed that transaction.", run.ts_us / 1e6)
        tables = GaugeMetricFamily("cdc_lake_tables", "Tables, by what the newest run did.", labels=["what"])
        for what, count in run.counts.items():
            tables.add_metric([what], count)
        tables.add_metric(["refused"], len(run.refused))
        yield tables


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"cdc_lake_{name}", says, value=value)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
