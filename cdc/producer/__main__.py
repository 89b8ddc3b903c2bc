"""The program cdc-producer: parses its command line, loads the profile and runs the pipeline."""

import argparse
import functools
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cdc.config import profile
from cdc.kafka.broker_checks import Brokers
from cdc.producer import pipeline
from cdc.producer.binlog.leader import at_leader
from cdc.producer.commands import ask_for_copies, check, copy_status, dry_run, stop_copies
from cdc.producer.copy.throttle import RowRate
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.pipeline import StartOptions
from cdc.producer.skips import Skips
from cdc.service import monitor, process
from cdc.service.command_line import add_common_options, not_negative
from cdc.service.commands import Command, send
from cdc.service.logs import event, setup_logging
from cdc.service.process import process_name
from cdc.service.retry import Retry

__all__ = ["main"]

_EPILOG = """\
The position is in Kafka, beside the records: the program can be stopped, killed and started at any time.

exit status:
  0  stopped by SIGTERM or SIGINT, or at the position given by --until-current
  2  something must be changed first: profile, server setting, grant
  3  stopped because the next event cannot be replicated faithfully
  4  a server is gone and all retries failed
"""
_EXAMPLES = """
cdc-producer producer_profile.toml
cdc-producer producer_profile.toml --check
cdc-producer producer_profile.toml --copy 'shop.*'
"""


def main() -> int:
    """Runs the program; returns its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if (command := _command(parser, arguments)) is not None:
        status = process.exit_status(functools.partial(_only, arguments.profile, command), program="cdc-producer")
        if status or not arguments.until_current:
            return status
    options = StartOptions(process_name(), arguments.until_current, arguments.accept_filters)
    return process.exit_status(functools.partial(_run, arguments, options), program="cdc-producer")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cdc-producer",
        description="Read a MySQL leader's binlog and write each change into Kafka, exactly once.",
        epilog=_EPILOG,
    )
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="TOML file: server, filters, topic")
    parser.add_argument(
        "--until-current", action="store_true", help="end at the position that the leader has when the program starts"
    )
    parser.add_argument(
        "--skip",
        metavar="FILE:OFFSET",
        action="append",
        default=[],
        help="skip the event at this position of the leader's binlog if it is refused; may be repeated",
    )
    parser.add_argument(
        "--copy-unrepeatable",
        action="store_true",
        help='as producer.on_unrepeatable = "copy" in the profile: copy a table again, instead of stopping, where its '
        "rows in the binlog can't be read or followers can't repeat a statement",
    )
    parser.add_argument(
        "--accept-filters",
        action="store_true",
        help="do not copy what the filters include now, whose earlier rows are not in the topic",
    )
    _add_commands(parser)
    add_common_options(parser, examples=_EXAMPLES)
    return parser


def _add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--copy",
        metavar="DB.TABLE",
        action="append",
        default=[],
        help="ask the producer that runs to copy these tables into the stream again, or with --until-current do so "
        "itself; a glob, may be repeated",
    )
    parser.add_argument(
        "--copy-stop",
        metavar="DB.TABLE",
        action="append",
        default=[],
        help="take such requests back, and end a copy that is under way; a glob, may be repeated",
    )
    parser.add_argument(
        "--copy-status", action="store_true", help="only say which tables are to be copied, and how far that is"
    )
    parser.add_argument(
        "--copy-rate",
        metavar="ROWS",
        type=not_negative,
        help="have the running producer copy at most so many rows a second until it ends; 0: without a limit. Needs "
        "metrics.token",
    )
    parser.add_argument(
        "--pause",
        action="store_true",
        help="have the running producer read and write nothing more until --resume; needs metrics.token",
    )
    parser.add_argument("--resume", action="store_true", help="have the running producer read again after --pause")
    parser.add_argument(
        "--check",
        action="store_true",
        help="only list what prevents the start, and what mends it; nothing is written. Exit status 0 or 2",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only say what would happen, with each table that would be copied; nothing is written",
    )


def _command(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Callable[..., int] | None:
    """Returns the command to run instead of replicating, None if the options name none. The command is called with the
    profile and ``log``."""
    commands = arguments.pause, arguments.resume, arguments.copy_rate is not None
    stop_or_status = arguments.copy_stop, arguments.copy_status, *commands
    if arguments.check or arguments.dry_run:
        if any((arguments.until_current, arguments.skip, arguments.copy_unrepeatable, *stop_or_status)):
            parser.error("--check and --dry-run go with --copy or --accept-filters only")
        look = functools.partial(check if arguments.check else dry_run, globs=arguments.copy)
        return lambda profile, *, log: look(at_leader(profile), accept_filters=arguments.accept_filters)
    given = (arguments.copy, *stop_or_status)
    otherwise = (
        arguments.accept_filters
        or arguments.skip
        or arguments.copy_unrepeatable
        or (arguments.until_current and not arguments.copy)
    )
    if any(given) and (sum(map(bool, given)) > 1 or otherwise):
        parser.error(
            "--copy, --copy-stop, --copy-status, --copy-rate, --pause and --resume go with nothing else, but --copy "
            "with --dry-run or --until-current"
        )
    if arguments.copy_rate is not None:
        return functools.partial(_tell, name="copy-rate", rows_per_second=arguments.copy_rate)
    if arguments.pause or arguments.resume:
        return functools.partial(_tell, name="pause" if arguments.pause else "resume")
    if arguments.copy_status:
        return lambda profile, *, log: copy_status(profile)
    if arguments.copy_stop:
        return functools.partial(stop_copies, globs=arguments.copy_stop)
    if arguments.copy:
        return functools.partial(ask_for_copies, globs=arguments.copy)
    return None


def _only(path: Path, command: Callable[..., int]) -> int:
    settings = profile.load(path, servers=profile.BOTH_SERVERS)
    setup_logging(level=settings.log.level, form=settings.log.format)
    return command(settings, log=functools.partial(event, logging.getLogger("cdc.producer")))


def _tell(settings: profile.Profile, *, name: str, log: Callable[..., None], **number: int) -> int:
    """Sends the command ``name`` to the running producer, and prints its answer."""
    print(send(settings.metrics, name, **number))
    return 0


def _run(arguments: argparse.Namespace, options: StartOptions) -> int:
    settings = profile.load(arguments.profile, servers=profile.BOTH_SERVERS)
    if arguments.copy_unrepeatable:
        settings = replace(settings, producer=replace(settings.producer, on_unrepeatable="copy"))
    line = setup_logging(level=settings.log.level, form=settings.log.format)
    log = functools.partial(event, logging.getLogger("cdc.producer"))
    stop = process.stop_on_signals(log)
    retry = Retry(seconds=settings.producer.retry_seconds, log=log, stop=stop)
    metrics = ProducerMetrics(
        retry=retry,
        brokers=Brokers(settings.kafka.properties()),
        topics=settings.kafka.topics().first,
        heartbeat_seconds=settings.producer.heartbeat_seconds,
    )
    rate = RowRate(settings.producer.copy_rows_per_second)
    commands = {
        "copy-rate": Command(functools.partial(_change_rate, rate), "rows_per_second"),
        "pause": Command(functools.partial(metrics.pause.command, True)),
        "resume": Command(functools.partial(metrics.pause.command, False)),
    }
    with monitor.shown(metrics, program="cdc-producer", profile=settings, line=line, log=log, commands=commands):
        pipeline.run(
            settings,
            options=replace(options, skips=Skips(arguments.skip, log=log), copy_rate=rate),
            retry=retry,
            metrics=metrics,
            stop=stop,
            log=log,
        )
    return 0


def _change_rate(rate: RowRate, rows: int) -> str:
    """Executes the command ``copy-rate``."""
    rate.change(rows)
    return f"tables are copied at {rows} rows a second at most" if rows else "tables are copied without a limit"


if __name__ == "__main__":
    sys.exit(main())
