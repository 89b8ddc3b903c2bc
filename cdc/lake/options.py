"""Parses the command line of cdc-lake."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from cdc.config.table_globs import TableGlobs
from cdc.model.names import folded
from cdc.service.command_line import add_common_options, positive
from cdc.spark.ddl.lineage import Name
from cdc.spark.frames.typed import Options

__all__ = ["Selection", "parse_options", "value_options"]

_EPILOG = """\
All tables of the lake are as of the same sequence, the end of a leader's transaction; lake.json in DIR lists them with
the version that is. If cdc-lake is stopped or killed, it continues when it is started again.

exit status: 0 done; 2 something must be changed first; 3 the topics are damaged, or something else wrote to the lake
"""
_EXAMPLES = """
cdc-lake producer_profile.toml --to lake
cdc-lake producer_profile.toml --to lake --format iceberg --follow --metrics 9467
"""


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line; ``metrics`` in the result is a host and a port. Ends the program if an option is
    invalid, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="cdc-lake",
        description="Keep a lake of tables equal to a leader's, from its topics alone, with Spark.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("profile", type=Path, metavar="PROFILE", help="profile of cdc-producer")
    add("--to", type=_folder, required=True, metavar="DIR", help="the lake's folder: a path, or an address of Hadoop")
    add(
        "--format", choices=["delta", "iceberg", "parquet"], default="delta", help="of the tables (default %(default)s)"
    )
    add(
        "--catalog",
        type=Path,
        metavar="FILE",
        help="with --format iceberg: the REST catalog or Hive metastore of tables",
    )
    add("--check", action="store_true", help="list what must be changed first, write nothing")
    add("--history", action="store_true", help="beside each table one of its changes, only appended to")
    add("--change-feed", action="store_true", help="with --format delta: tables have Delta's change data feed")
    add("--tables", action="append", metavar="GLOB", help="only these DATABASE.TABLE; may be given again")
    add("--without", action="append", default=[], metavar="GLOB", help="not these; may be given again")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--at", metavar="SEQUENCE|GTID|TIME", help="as of then; a time without a zone is UTC")
    when.add_argument("--follow", action="store_true", help="continue with new records, until a signal")
    add(
        "--interval", type=positive, default=5.0, metavar="SECONDS", help="with --follow, from run to run (%(default)s)"
    )
    add(
        "--maintain",
        type=positive,
        metavar="HOURS",
        help="with --follow: so often merge small files, remove old versions",
    )
    add("--metrics", metavar="[HOST:]PORT", help="with --follow: the address of /metrics and /healthz")
    add("--zero-dates", choices=["error", "null", "string"], default="error", help="dates that no calendar has")
    add("--typed-json", choices=["error", "null", "record"], default="error", help="JSON with members of SQL types")
    add("--on-alter", choices=["error", "null"], default="error", help="values that an ALTER changed without a record")
    add_common_options(parser, examples=_EXAMPLES)
    options = parser.parse_args(arguments)
    _require_sound(parser, options)
    if options.metrics is not None:
        host, _, port = options.metrics.rpartition(":")
        options.metrics = (host.strip("[]") or "127.0.0.1", int(port))
    if options.at is not None and options.at.isdecimal():
        options.at = int(options.at)
    return options


def _require_sound(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Ends the program with a message of the ``parser`` if an option lacks another one, or has an unfit value."""
    if options.maintain is not None and not options.follow:
        parser.error("--maintain needs --follow")
    if options.catalog is not None and options.format != "iceberg":
        parser.error("--catalog needs --format iceberg")
    if options.change_feed and options.format != "delta":
        parser.error("--change-feed needs --format delta")
    if options.metrics is not None:
        port = options.metrics.rpartition(":")[2]
        if not options.follow or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
            parser.error("--metrics needs --follow, and [HOST:]PORT")


def _folder(text: str) -> Path | str:
    """Parses a path, or an address such as hdfs://…. An address remains a text, because pathlib would turn it into a
    folder named ``hdfs:``.
    """
    if re.match("file:/", text):
        return Path(url2pathname(urlsplit(text).path))  # a Path, since Hadoop's API has no locks for a local folder
    return text if re.match("[A-Za-z][A-Za-z0-9+.-]*:/", text) else Path(text)


def value_options(options: argparse.Namespace) -> Options:
    """Returns the options for values that Spark can't represent."""
    return Options(zero_dates=options.zero_dates, on_alter=options.on_alter, typed_json=options.typed_json)


class Selection:
    """Selects the tables of the lake according to their names in the leader's records.

    If ``folds_names`` is true, these names are in lower case, so the globs are compared in lower case, too. Raises
    UserError for an invalid glob.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._globs = options.tables or ["*.*"], options.without
        self.folds_names = False
        self._wanted, self._left_out = self._compiled(str)
        self._wanted_folded, self._left_out_folded = self._compiled(folded)

    def _compiled(self, spelled: Callable[[str], str]) -> tuple[TableGlobs, TableGlobs]:
        wanted, left_out = (map(spelled, globs) for globs in self._globs)
        return (
            TableGlobs.of(wanted, key="--tables", names_database=False),
            TableGlobs.of(left_out, key="--without", names_database=False),
        )

    def __call__(self, name: Name) -> bool:
        if self.folds_names:
            return self._wanted_folded.match(*name) and not self._left_out_folded.match(*name)
        return self._wanted.match(*name) and not self._left_out.match(*name)
