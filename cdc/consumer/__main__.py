"""Runs the program cdc-consumer. It reads a leader's records from Kafka and applies each of them exactly once to the
follower.
"""

import argparse
import gc
import logging
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cdc.config.profile import BOTH_SERVERS, Profile, load
from cdc.config.renames import Renames
from cdc.consumer.check import check
from cdc.consumer.metrics import Activity, Counters
from cdc.consumer.pipeline import Options, run
from cdc.consumer.preflight import found_follower
from cdc.consumer.promotion import promote
from cdc.consumer.range.delay import Pause, RateLimit
from cdc.consumer.range.until import Place, Until
from cdc.consumer.state.skips import Skips
from cdc.consumer.state.status import as_json, as_text, read_status
from cdc.errors import UserError
from cdc.kafka.broker_checks import Brokers
from cdc.service.command_line import add_common_options, not_negative
from cdc.service.commands import Command, send
from cdc.service.logs import event, setup_logging
from cdc.service.monitor import shown
from cdc.service.process import exit_status, stop_on_signals
from cdc.service.retry import Retry

__all__ = ["main"]

_EPILOG = """\
The profile's [database] is the follower, mysql_resource_name the leader whose records are applied.
The follower remembers what was applied (cdc.checkpoint): start and stop it at any time, nothing is lost or repeated.
SIGUSR1 pauses it between two transactions of the leader, SIGUSR2 lets it continue; so do --pause and --resume.

exit status: 0 done; 2 something must be changed first; 3 stopped to keep a promise (a gap, a conflict under "stop", a
row or statement that the follower refuses); 4 a server is unreachable for longer than consumer.retry_seconds
"""
_EXAMPLES = """
cdc-consumer consumer_profile.toml
cdc-consumer consumer_profile.toml --check --leader producer_profile.toml
cdc-consumer consumer_profile.toml --status
cdc-consumer consumer_profile.toml --until 2026-03-01T12:30:00+01:00
"""


def main() -> int:
    """Runs the program; returns its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.json and not arguments.status:
        parser.error("--json goes with --status")
    if arguments.status and arguments.until:
        parser.error("--until does not go with --status")
    if (arguments.pause or arguments.resume or arguments.rate is not None) and (
        arguments.until or arguments.until_current
    ):
        parser.error("--until and --until-current do not go with --pause, --resume and --rate")
    if arguments.check and (arguments.until or arguments.until_current):
        parser.error("--check goes with --leader only")
    if arguments.promote and (arguments.until or arguments.until_current):
        parser.error("--promote goes with --leader only")
    if arguments.leader and not (arguments.check or arguments.promote):
        parser.error("--leader goes with --check and --promote")
    return exit_status(lambda: _run(arguments), program="cdc-consumer")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cdc-consumer",
        description="Apply the records of a leader's topic to the follower until SIGTERM or Ctrl-C.",
        epilog=_EPILOG,
    )
    add_common_options(parser, examples=_EXAMPLES)
    parser.add_argument("profile", metavar="PROFILE", type=Path, help="the profile, a TOML file")
    parser.add_argument(
        "--until-current", action="store_true", help="end once everything that is in the topic now is applied"
    )
    _add_actions(parser)
    parser.add_argument(
        "--until",
        metavar="SEQUENCE|GTID|TIME",
        help="end after this record, before the transaction with this GTID, or before the first one that the leader "
        "committed at this time (2026-03-01T12:30:00+01:00) or later; always between two of its transactions",
    )
    parser.add_argument(
        "--leader",
        metavar="PROFILE",
        type=Path,
        help="the producer's profile: with --check both servers' definitions of the tables are compared, with "
        "--promote the leader is asked for what is not in the topic",
    )
    # an option of earlier versions of cdc; using it is an error
    parser.add_argument("--rewind", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="with --status: as one JSON object")
    return parser


def _add_actions(parser: argparse.ArgumentParser) -> None:
    """Adds the options that exclude one another."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--status", action="store_true", help="show what has been applied, and end; also while a consumer is running"
    )
    what.add_argument(
        "--check",
        action="store_true",
        help="only list what prevents the start, and what mends it; nothing is written, and a consumer may run. Exit "
        "status 0 or 2",
    )
    what.add_argument(
        "--promote",
        action="store_true",
        help="make the follower a leader: check that everything is applied, create the leader's triggers and events, "
        "and print what to change elsewhere; no consumer may run. Exit status 0, or 2 and nothing is changed",
    )
    _add_commands(what)
    what.add_argument(
        "--retry-parked",
        action="store_true",
        help="first apply what was left out of parked tables (consumer.on_refused), once the follower takes it, and go "
        "on with them as with all others",
    )
    what.add_argument(
        "--drop-parked",
        action="store_true",
        help="first give up what was left out of parked tables, for good, and apply their next changes",
    )
    what.add_argument(
        "--skip",
        metavar="SEQUENCE|DATABASE.TABLE",
        action="append",
        default=[],
        help="do without the record of this sequence, where the follower refuses it, or without all that it refuses of "
        "this table until that is copied again (cdc-producer PROFILE --copy); may be given several times",
    )


def _add_commands(what: argparse._ActionsContainer) -> None:
    """Adds the commands to a running consumer to a group of options."""
    what.add_argument(
        "--pause",
        action="store_true",
        help="have the running consumer apply nothing more until --resume; this and the next two need metrics.token",
    )
    what.add_argument("--resume", action="store_true", help="have the running consumer apply again after --pause")
    what.add_argument(
        "--rate",
        metavar="ROWS",
        type=not_negative,
        help="have the running consumer apply at most so many rows a second until it ends; 0: without a limit",
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.rewind is not None:
        raise UserError(
            "--rewind was removed",
            code="CDC-REWIND-GONE",
            where="option --rewind",
            hint="nothing was changed; cdc-repair makes rows equal to the leader's again, or for a whole table "
            "cdc-producer PROFILE --copy DATABASE.TABLE",
        )
    profile = load(arguments.profile, servers=BOTH_SERVERS)
    if arguments.check or arguments.promote:
        leader = load(arguments.leader, servers=BOTH_SERVERS) if arguments.leader else None
        setup_logging(level=profile.log.level, form=profile.log.format)
        return (check if arguments.check else promote)(profile, leader=leader)
    if arguments.pause or arguments.resume:
        return _tell(profile, "pause" if arguments.pause else "resume")
    if arguments.rate is not None:
        return _tell(profile, "rate", rows_per_second=arguments.rate)
    if arguments.status:
        return _show_status(profile, show=as_json if arguments.json else partial(as_text, terminal=sys.stdout.isatty()))
    until = Until(Place.parse(arguments.until)) if arguments.until else None
    skips = Skips.parse(arguments.skip, new=Renames(profile.renames, own=profile.consumer.schema).new)
    options = Options(
        skips,
        until_current=arguments.until_current,
        until=until,
        retry_parked=arguments.retry_parked,
        drop_parked=arguments.drop_parked,
    )
    return _consume(profile, options)


def _tell(profile: Profile, command: str, **number: int) -> int:
    """Sends the command to the running consumer, and prints its answer."""
    print(send(profile.metrics, command, **number))
    return 0


def _show_status(profile: Profile, *, show: Callable[..., str]) -> int:
    setup_logging(level=profile.log.level, form=profile.log.format)
    newest = Brokers(profile.kafka.properties()).commits(profile.kafka.topics().commits)
    following = newest.next_sequence if newest else None
    silent = newest.silence(now=time.time()) if newest else None
    resource = profile.mysql_resource_name
    profile = found_follower(profile)
    status = read_status(profile.database, resource=resource, schema=profile.consumer.schema)
    print(show(status, follower=str(profile.database), resource=resource, following=following, silent=silent))
    return 0


def _consume(profile: Profile, options: Options) -> int:
    line = setup_logging(level=profile.log.level, form=profile.log.format)
    log = partial(event, logging.getLogger("cdc.consumer"))
    stop = stop_on_signals(log)
    retry = Retry(seconds=profile.consumer.retry_seconds, log=log, stop=stop)
    # The program holds millions of dicts, none of which is part of a cycle. With a tenth of this threshold, the garbage
    # collector took a third of the program's time; with Python's default threshold, it took even more.
    gc.set_threshold(1_000_000, 50, 1000)
    brokers = Brokers(profile.kafka.properties())
    counters = Counters(limit=RateLimit(profile.consumer.rows_per_second))
    for number, wanted in ((signal.SIGUSR1, True), (signal.SIGUSR2, False)):
        signal.signal(number, partial(_on_signal, counters.pause, wanted))
    commits = profile.kafka.topics().commits
    activity = Activity(
        counters,
        retry=retry,
        brokers=brokers,
        commits=commits,
        follower=profile.database,
        alive_seconds=profile.producer.alive_seconds,
    )
    commands = _commands(counters)
    with shown(activity, program="cdc-consumer", profile=profile, line=line, log=log, commands=commands):
        run(profile, retry=retry, counters=counters, options=options, stop=stop)
    return 0


def _commands(counters: Counters) -> dict[str, Command]:
    """Returns the commands that the running program takes."""

    def pause(wanted: bool, _: int) -> str:
        counters.pause.wanted = wanted
        return "the consumer pauses between two transactions of the leader" if wanted else "the consumer applies again"

    def change_rate(rows: int) -> str:
        counters.limit.change(rows)
        return f"the consumer applies at most {rows} rows a second" if rows else "the consumer applies without a limit"

    return {
        "pause": Command(partial(pause, True)),
        "resume": Command(partial(pause, False)),
        "rate": Command(change_rate, "rows_per_second"),
    }


def _on_signal(pause: Pause, wanted: bool, *_: object) -> None:
    pause.wanted = wanted  # a signal handler may run between any two instructions, so it only sets this flag


if __name__ == "__main__":
    sys.exit(main())
