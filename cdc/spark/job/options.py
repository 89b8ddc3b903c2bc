"""Parses the audit's command-line options, which cdc-audit and spark-submit share, and loads the profiles they name."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Self

from cdc.config.profile import KAFKA_ONLY, Profile, load
from cdc.errors import UserError
from cdc.model.names import folded
from cdc.service.command_line import add_common_options
from cdc.spark.ddl.accepted_drift import Entry

__all__ = ["NO_TERMS", "SMALL", "Terms", "consumer_profile", "is_small", "parse_options", "side_profiles"]

_EXAMPLES = """
cdc-audit --leader producer_profile.toml --follower follower_profile.toml --report report
cdc-audit --leader producer_profile.toml --follower follower_profile.toml --report report --watch 60
"""

_MANY_ROWS = 1_000_000
SMALL = 200_000  # up to this number of records, Spark's optimizations for large audits cost more than they save


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions of a verdict.

    If a producer's last sign of life is more than ``max_age`` seconds old, there is no verdict. If ``exact`` is true,
    rows are compared one by one, not by digests of 64 bits. Drift that one of the ``accepted`` entries describes does
    not count.
    """

    max_age: float | None = None
    exact: bool = False
    accepted: tuple[Entry, ...] = ()

    def folded(self) -> Self:
        """Returns the terms with the names of accepted objects in lower case."""
        return replace(self, accepted=tuple(replace(each, name=folded(each.name)) for each in self.accepted))

    def in_force(self, audited_at: str) -> tuple[Entry, ...]:
        """Returns the accepted entries that have not expired at the time ``audited_at`` (ISO 8601, in UTC)."""
        today = datetime.fromisoformat(audited_at).date()
        return tuple(each for each in self.accepted if each.until is None or today <= each.until)


NO_TERMS = Terms()


def is_small(records: int, rows: int = 0) -> bool:
    """Whether an audit takes only seconds, according to the number of ``records`` and the number of ``rows`` (0 if they
    are not counted yet).
    """
    return records <= SMALL and rows <= _MANY_ROWS


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Compare the follower with the leader, by both topics, at the sequence the follower has applied.",
        epilog="Exit status: 0 no drift, 1 drift, 2 could not judge.",
    )

    add_common_options(parser, examples=_EXAMPLES)

    def path(option: str, explained: str, *, required: bool = False, metavar: str | None = None) -> None:
        parser.add_argument(option, type=Path, required=required, metavar=metavar, help=explained)

    def seconds(option: str, explained: str) -> None:
        parser.add_argument(option, type=float, metavar="SECONDS", help=explained)

    path("--leader", "profile of the leader's cdc-producer", required=True)
    path("--follower", "profile of the follower's cdc-producer", required=True)
    path("--consumer", "profile of the follower's cdc-consumer, whose filters and renames apply")
    path("--report", "folder for the report", required=True, metavar="DIR")
    # The option is kept as text: Path would turn the two slashes of a URI into one.
    parser.add_argument(
        "--state", metavar="DIR", help="folder, or its URI, in which the next audit finds what this one read"
    )
    path("--accept", "TOML file with the drift that is known and wanted", metavar="FILE")
    seconds("--watch", "repeat the audit at this interval, until a signal")
    seconds("--max-age", "no verdict if the newest entry of a commit log is older")
    parser.add_argument("--exact", action="store_true", help="compare all rows one by one, none by digests of 64 bits")
    parser.add_argument("--metrics", metavar="[HOST:]PORT", help="with --watch: the address of /metrics and /healthz")
    return parser


def parse_options(program: str, arguments_given: Sequence[str] | None) -> argparse.Namespace:
    """Parses the options; returns them with ``metrics`` as host and port. Ends the program if an option is invalid, as
    argparse does.
    """
    parser = _parser(program)
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


def consumer_profile(options: argparse.Namespace) -> Profile | None:
    """Returns the consumer's profile, None if it is not given. Raises UserError if the profile is invalid, or if the
    other profiles name another leader or other renames.
    """
    if options.consumer is None:
        return None
    leader, follower, consumer = (
        load(path, servers=KAFKA_ONLY) for path in (options.leader, options.follower, options.consumer)
    )
    for key, ours, theirs in (
        ("mysql_resource_name", leader.mysql_resource_name, consumer.mysql_resource_name),
        ("kafka.topic", leader.kafka.topic, consumer.kafka.topic),
    ):
        if ours != theirs:
            raise UserError(
                f"the consumer's {key} is {theirs}, the leader's {ours}",
                code="CDC-AUDIT-PROFILES-DIFFER",
                where=f"option --consumer {options.consumer}",
                hint="name the profile of the consumer that applies this leader's topic",
            )
    if follower.renames and follower.renames != consumer.renames:
        raise UserError(
            "the [renames] of the follower's profile differ from the consumer's",
            code="CDC-AUDIT-PROFILES-DIFFER",
            where=f"option --follower {options.follower}",
            hint="remove them: those of --consumer apply",
        )
    return consumer


def side_profiles(options: argparse.Namespace) -> tuple[Profile, Profile]:
    """Reads the leader's and the follower's profile. Raises UserError if a profile is invalid, or if both have the same
    topic.
    """
    leader, follower = (load(path, servers=KAFKA_ONLY) for path in (options.leader, options.follower))
    if leader.kafka.topic == follower.kafka.topic:
        raise UserError(
            f"leader and follower have the same topic: {leader.kafka.topic}",
            code="CDC-AUDIT-SAME-TOPIC",
            where="profile key kafka.topic",
            hint="capture the follower's binlog into a separate topic",
        )
    return leader, follower
