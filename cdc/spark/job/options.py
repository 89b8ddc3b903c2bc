"""The options of the audit, the same for cdc-audit and spark-submit."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from cdc.config.profile import Profile, load
from cdc.errors import UserError

__all__ = ["SMALL", "consumer_of", "parsed", "profiles_of"]

SMALL = 200_000  # records up to which an audit is over before Spark's preparations for more would pay


def _arguments(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Compare the follower with the leader by the topics of both, at the sequence the follower is at.",
        epilog="Exit status: 0 no drift, 1 drift, 2 could not judge.",
    )
    parser.add_argument("--leader", type=Path, required=True, help="profile of the leader's cdc-producer")
    parser.add_argument("--follower", type=Path, required=True, help="profile of the follower's cdc-producer")
    parser.add_argument(
        "--consumer", type=Path, help="profile of the follower's cdc-consumer: its filters and renames count"
    )
    parser.add_argument("--report", type=Path, required=True, metavar="DIR", help="folder for the reports")
    parser.add_argument("--state", type=Path, metavar="DIR", help="folder for what the next audit goes on from")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="audit again so often, until a signal")
    parser.add_argument(
        "--max-age", type=float, metavar="SECONDS", help="no verdict where a producer gave no sign of life for so long"
    )
    parser.add_argument("--metrics", metavar="[HOST:]PORT", help="with --watch: where /metrics and /healthz are")
    return parser


def parsed(program: str, arguments_given: Sequence[str] | None) -> argparse.Namespace:
    """The options, which go together; of ``metrics`` host and port. Ends the program where argparse does."""
    parser = _arguments(program)
    options = parser.parse_args(arguments_given)
    if options.watch is not None and (options.state is None or not options.watch > 0):
        parser.error("--watch SECONDS needs --state DIR, and a number above 0")
    if options.max_age is not None and not options.max_age > 0:
        parser.error("--max-age SECONDS needs a number above 0")
    if options.metrics is not None:
        host, _, port = options.metrics.rpartition(":")
        if options.watch is None or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
            parser.error("--metrics needs --watch, and [HOST:]PORT")
        options.metrics = (host.strip("[]") or "127.0.0.1", int(port))
    return options


def consumer_of(options: argparse.Namespace) -> Profile | None:
    """The consumer's profile, where it is given. Raises UserError for what ``load`` does, and for another leader's."""
    if options.consumer is None:
        return None
    leader, follower, consumer = (load(path) for path in (options.leader, options.follower, options.consumer))
    for key, ours, theirs in (
        ("mysql_resource_name", leader.mysql_resource_name, consumer.mysql_resource_name),
        ("kafka.topic", leader.kafka.topic, consumer.kafka.topic),
    ):
        if ours != theirs:
            raise UserError(
                f"the consumer's {key} is {theirs}, the leader's {ours}",
                where=f"option --consumer {options.consumer}",
                hint="name the profile of the consumer that applies this leader's topic",
            )
    if follower.renames and follower.renames != consumer.renames:
        raise UserError(
            "the [renames] of the follower's profile are not the consumer's",
            where=f"option --follower {options.follower}",
            hint="leave them out: those of --consumer count",
        )
    return consumer


def profiles_of(options: argparse.Namespace) -> tuple[Profile, Profile]:
    """The leader's and the follower's profile. Raises UserError for what ``load`` does, and for two of one topic."""
    leader, follower = load(options.leader), load(options.follower)
    if leader.kafka.topic == follower.kafka.topic:
        raise UserError(
            f"leader and follower have the same topic: {leader.kafka.topic}",
            where="profile key kafka.topic",
            hint="the follower's binlog is captured into a topic of its own",
        )
    return leader, follower
