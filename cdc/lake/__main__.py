"""The program cdc-lake, also as spark-submit runs it:

    spark-submit --packages <Spark's Kafka connector>,<that of the format> cdc/lake/__main__.py PROFILE --to DIR

``cdc`` must be installed for the Python that runs it.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable

from cdc.config.profile import Profile, load
from cdc.lake.folder import LakeFolder
from cdc.lake.follow import Following
from cdc.lake.formats.delta import DeltaTables
from cdc.lake.formats.iceberg import IcebergTables
from cdc.lake.options import parse_options, selection, value_options
from cdc.lake.pipeline import Lake
from cdc.lake.session import require_spark, started
from cdc.service.logs import LastLine, print_error, setup_logging
from cdc.service.process import exit_status, stop_on_signals
from cdc.spark.frames.messages import Source
from cdc.spark.job.session import stop

__all__ = ["main"]

_FORMATS: dict[str, type[DeltaTables] | type[IcebergTables]] = {"delta": DeltaTables, "iceberg": IcebergTables}


def main() -> int:
    """Run the program; returns its exit status."""
    options = parse_options(sys.argv[1:])
    try:
        return exit_status(lambda: _run(options), program="cdc-lake")
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        print_error("cdc-lake", f"Spark failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        return 2


def _run(options: argparse.Namespace) -> int:
    profile, selects, values = load(options.profile), selection(options), value_options(options)
    last_line = setup_logging(level=profile.log.level, form=profile.log.format)
    require_spark(os.environ)
    folder = LakeFolder(options.to.resolve(), identity(profile, options.format))
    try:
        state = folder.load()
        tables = _FORMATS[options.format]
        spark = started(os.environ, options.format, tables.settings)
        lake = Lake(folder, tables(spark, folder.path), profile, values, selects, state, _shown(last_line))
        if options.follow:
            following = Following(lambda: Source.of(spark, profile), lake, interval=options.interval)
            status = following.run(stop_on_signals(), listen=options.metrics)
        else:
            begun = time.monotonic()
            run = lake.advance(Source.of(spark, profile), options.at)
            if last_line:
                last_line.show("")
            print(run.line(time.monotonic() - begun))
            status = 0
        stop(spark)
        return status
    finally:
        folder.close()


def _shown(last_line: LastLine | None) -> Callable[[str, str], None]:
    """Shows on a terminal which table is written."""

    def passed(point: str, table: str) -> None:
        if last_line:
            last_line.show(f"writing {table}" if point == "before" else "")

    return passed


def identity(profile: Profile, form: str) -> dict[str, str]:
    """What a lake is of: another folder is needed for another."""
    names = profile.kafka.topics()
    return {"format": form, "resource": profile.mysql_resource_name, "topic": profile.kafka.topic,
            "layout": names.layout, "prefix": profile.kafka.prefix}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
