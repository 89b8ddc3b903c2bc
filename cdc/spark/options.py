"""The options of the audit, the same for cdc-audit and spark-submit."""

import argparse
from pathlib import Path

from cdc.errors import UserError
from cdc.profile import Profile, load

__all__ = ["SMALL", "arguments", "consumer_of", "profiles_of"]

SMALL = 200_000  # records up to which an audit is over before Spark's preparations for more would pay


def arguments(program: str) -> argparse.ArgumentParser:
    """A parser that gives ``leader``, ``follower`` and ``report``."""
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
    return parser


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
