"""Parses the audit's command-line options, which cdc-audit and spark-submit share, and loads the profiles and the file
of accepted drift that they name.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from cdc.config.profile import KAFKA_ONLY, Profile, load
from cdc.config.table_globs import TableGlobs
from cdc.config.toml_tables import parsed
from cdc.errors import UserError
from cdc.model.names import folded
from cdc.service.command_line import add_common_options, positive
from cdc.spark.ddl.accepted_drift import DEFINITION, ROWS, SKIPPED_EVENT, Entry

__all__ = [
    "NO_TERMS",
    "SMALL",
    "Terms",
    "accepted_drift",
    "consumer_profile",
    "is_small",
    "parse_options",
    "side_profiles",
]

# Reads the TOML file of ``--accept``: it lists the drift that is known and wanted. docs/audit.md explains its keys.

_KINDS = ("missing", "extra", "different")
_MOST_KEYS = 1_000


def accepted_drift(path: Path) -> tuple[Entry, ...]:
    """Reads the entries of the file. Raises UserError for an entry that does not follow docs/audit.md."""
    where = f"option --accept {path}"
    try:
        content = parsed(path.read_text(encoding="utf-8-sig"), name=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the file: {error}", code="CDC-AUDIT-ACCEPT-FILE", where=where) from None
    tables = content.pop("accept", [])
    if content or not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise UserError(
            "the file holds something else than tables [[accept]]",
            code="CDC-AUDIT-ACCEPT-FILE",
            where=where,
            hint="begin each entry with [[accept]]",
        )
    entries = tuple(_entry(number, each, f"{where}: entry {number}") for number, each in enumerate(tables, start=1))
    if sum(len(each.keys or ()) for each in entries) > _MOST_KEYS:
        raise UserError(f"the file names more than {_MOST_KEYS:,} keys", code="CDC-AUDIT-ACCEPT-FILE", where=where,
                        hint="accept such rows by their kind or by the columns that differ")  # fmt: skip
    return entries


def _entry(number: int, table: Mapping[str, Any], where: str) -> Entry:
    for key in table.keys() - _READ.keys():
        near = get_close_matches(key, _READ, n=1, cutoff=0.0)[0]
        raise UserError(
            f"unknown key {key}", code="CDC-AUDIT-ACCEPT-FILE", where=where, hint=f"the nearest known key is {near!r}"
        )
    for key in ("what", "name", "reason"):
        if key not in table:
            raise UserError(
                f"there is no {key}",
                code="CDC-AUDIT-ACCEPT-FILE",
                where=where,
                hint="each entry has what, name and reason",
            )
    values = {}
    for key, value in table.items():
        try:
            values[key] = _READ[key](value)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{key}: {error}", code="CDC-AUDIT-ACCEPT-FILE", where=where, hint=f"write {_VALUES[key]}"
            ) from None
    entry = Entry(number, **values)
    _require_sense(entry, where)
    return entry


def _require_sense(entry: Entry, where: str) -> None:
    """Raises UserError for conditions that do not fit the drift that the entry accepts."""
    for key, what in (("kinds", ROWS), ("columns", ROWS), ("keys", ROWS), ("statements", DEFINITION)):
        if getattr(entry, key) is not None and what not in entry.what:
            raise UserError(
                f"{key} is about {what}, which the entry does not accept",
                code="CDC-AUDIT-ACCEPT-FILE",
                where=where,
                hint=f"add {what!r} to what, or remove {key}",
            )
    if entry.columns is not None and entry.kinds not in (None, ("different",)):
        raise UserError(
            "columns is about rows that are different, kinds about others",
            code="CDC-AUDIT-ACCEPT-FILE",
            where=where,
            hint="remove the key kinds, or write another entry for the other kinds",
        )
    if "." in entry.name or "`" in entry.name:
        TableGlobs.of([entry.name], key="accept.name", names_database=True)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError("it is no text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError("it is no list of texts")
    return tuple(_text(each) for each in value)


def _of(known: Sequence[str]) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        found = _texts([value] if isinstance(value, str) else value)
        for each in found:
            if each not in known:
                raise ValueError(f"{each!r} is none of {', '.join(known)}")
        return found

    return read


def _day(value: Any) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError("it is no day")
    return value


def _keys(value: Any) -> tuple[Mapping[str, str], ...]:
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) and each for each in value):
        raise TypeError("it is no list of keys")
    for key in value:
        for column, each in key.items():
            if not isinstance(each, int | str) or isinstance(each, bool):
                raise TypeError(f"{column} is neither a whole number nor text")
    return tuple({column: str(each) for column, each in key.items()} for key in value)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "what": _of((ROWS, DEFINITION, SKIPPED_EVENT)), "name": _text, "reason": _text, "until": _day,
    "kinds": _of(_KINDS), "columns": _texts, "keys": _keys, "statements": _texts,
}  # fmt: skip
_VALUES = {
    "what": f'"{ROWS}", "{DEFINITION}", "{SKIPPED_EVENT}" or a list of them', "name": '"shop.order" or "shop.*"',
    "reason": '"asked for by the report team, ticket 42"', "until": "2027-01-31, without quotes",
    "kinds": '["extra"]', "columns": '["note"]', "keys": "[{id = 5}, {id = 7}]",
    "statements": '["CREATE INDEX by_day ON order (day)"]',
}  # fmt: skip


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
        parser.add_argument(option, type=positive, metavar="SECONDS", help=explained)

    path("--leader", "profile of the leader's cdc-producer", required=True)
    path("--follower", "profile of the follower's cdc-producer", required=True)
    path("--consumer", "profile of the follower's cdc-consumer, whose filters and renames apply")
    path("--report", "folder for the report", required=True, metavar="DIR")
    # The option is kept as text: Path would turn the two slashes of a URI into one.
    parser.add_argument(
        "--state", metavar="DIR", help="folder, or its URI, in which the next audit finds what this one read"
    )
    parser.add_argument(
        "--from-lake", metavar="DIR",
        help="folder, or its URI: land both topics' new messages there, and read all of them from there",
    )  # fmt: skip
    path("--accept", "TOML file with the drift that is known and wanted", metavar="FILE")
    seconds("--watch", "repeat the audit at this interval, until a signal")
    seconds("--max-age", "no verdict if the newest entry of a commit log is older")
    parser.add_argument("--check", action="store_true", help="list what must be changed first, audit nothing")
    parser.add_argument("--exact", action="store_true", help="compare all rows one by one, none by digests of 64 bits")
    parser.add_argument("--metrics", metavar="[HOST:]PORT", help="with --watch: the address of /metrics and /healthz")
    return parser


def parse_options(program: str, arguments_given: Sequence[str] | None) -> argparse.Namespace:
    """Parses the options; returns them with ``metrics`` as host and port. Ends the program if an option is invalid, as
    argparse does.
    """
    parser = _parser(program)
    options = parser.parse_args(arguments_given)
    if options.watch is not None and options.state is None:
        parser.error("--watch SECONDS needs --state DIR")
    if options.watch is not None and options.from_lake is not None:
        parser.error("--from-lake is for single audits: with --watch the state has what was read")
    if options.metrics is not None:
        host, _, port = options.metrics.rpartition(":")
        if options.watch is None or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
            parser.error("--metrics needs --watch, and [HOST:]PORT")
        options.metrics = (host.strip("[]") or "127.0.0.1", int(port))
    return options


def consumer_profile(options: argparse.Namespace) -> Profile | None:
    """Returns the consumer's profile, None if it is not given. Raises UserError if the profile is invalid, or if its
    leader, topic or renames differ from those in the other profiles.
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
