"""Prints what the producer would do, and everything that prevents it. Prints either a dry run, with all tables to copy,
or a list of checks.

It writes nothing to Kafka, to the leader or to disk, and does not disturb a running producer.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import pymysql
from confluent_kafka import KafkaException

from cdc.config.profile import Profile
from cdc.errors import CdcError, UserError
from cdc.kafka.broker_checks import missing_rights
from cdc.kafka.errors import open_error
from cdc.kafka.topics import known_topics
from cdc.model.commit_entry import Entry
from cdc.model.values import visible
from cdc.producer import pipeline
from cdc.producer.binlog.leader import Leader, translated
from cdc.producer.copy.definition import TableDefinition
from cdc.producer.copy.selection import base_tables, definitions, matching, require_copyable, require_gtids
from cdc.producer.copy.state import Pending, Table
from cdc.producer.copy.status import Estimate, estimates
from cdc.producer.copy.structure import copied_tables, creations_of
from cdc.producer.filter_changes import FilterEffect, change_of
from cdc.producer.resume import require_same_names, why_copied
from cdc.producer.standby import group_of
from cdc.service.command_line import CheckList
from cdc.service.logs import print_error
from cdc.service.mysql_connection import connected

__all__ = ["check", "dry_run"]

# DESCRIBE_CONFIGS is left out, since the producer only logs a warning if it lacks this right.
_WRITES, _ASKS = ("WRITE", "READ"), {"cdc-producer": ("READ",)}


def check(profile: Profile, *, globs: Sequence[str], accept_filters: bool) -> int:
    """Prints everything that a dry run finds, except the tables that can be copied, as a list of checks. Also prints
    the rights that our user lacks at the brokers. Returns the exit status, which is 0 or 2.
    """
    items = CheckList()
    with items.with_log():
        look = _Look(profile, say=lambda text: items.fine(text.rstrip(":")), left_out=items.note)
        look.ask_leader()
        if look.leader is not None:
            items.fine(f"the leader {look.leader.name} answers: version {look.leader.version}")
        if look.has_rights():
            look.ask_brokers()
        if look.kafka_seen:
            items.fine(f"Kafka {profile.kafka.bootstrap_servers} answers")
        look.plan(globs, accept_filters)
        for error in look.errors:
            items.problem(error)
    return items.end()


def dry_run(profile: Profile, *, globs: Sequence[str], accept_filters: bool) -> int:
    """Prints what would happen at a start or, with ``globs``, after a request to copy the tables that match them.
    Returns the exit status, which is 0 if nothing prevents the start or the copy.
    """
    look = _Look(profile, say=_say)
    look.ask_leader()
    look.ask_brokers()
    look.plan(globs, accept_filters)
    for error in look.errors:
        for part in error.each[:-1]:
            print_error("cdc-producer", type(error)(part, code=error.code, where=error.where))
        last = error.each[-1] if error.each else error.what
        print_error("cdc-producer", type(error)(last, code=error.code, where=error.where, hint=error.hint))
    return look.errors[0].exit_status if look.errors else 0


class _Look:
    """Does the steps of a dry run. Continues after an error, so that all errors are reported; ``errors``
    collects them.

    ``say`` prints a line about what would happen. ``left_out`` prints a table that can't be copied; if it is given, the
    tables that can be copied are not printed.
    """

    def __init__(
        self, profile: Profile, *, say: Callable[[str], None], left_out: Callable[[str], None] | None = None
    ) -> None:
        self._profile = profile
        self._say = say
        self._left_out = left_out
        self._settings = profile.database.settings()
        self.errors: list[CdcError] = []
        self.leader: Leader | None = None
        self._newest: Entry | None = None
        self.kafka_seen = False

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except CdcError as error:
            self.errors.append(error)

    def ask_leader(self) -> None:
        """Queries the leader's state."""
        with self._noting():
            problems: list[UserError] = []
            self.leader = pipeline.find_leader(self._profile, problems)
            self._profile = pipeline.as_on_leader(self._profile, self.leader)
            self.errors += problems

    def ask_brokers(self) -> None:
        """Queries the topics, and the newest entry of the commit log."""
        profile = self._profile
        with self._noting():
            try:
                self._newest = pipeline.topic_admin(profile).look(profile.mysql_resource_name)
                self.kafka_seen = True
            except KafkaException as error:
                topic, properties = profile.kafka.topic, profile.kafka.properties()
                raise open_error(error, topic, properties, answered=False) from None

    def plan(self, globs: Sequence[str], accept_filters: bool) -> None:
        """Prints what a start would do, or, with ``globs``, what a request to copy the matching tables would do."""
        if self.leader is None:
            return
        if globs:
            self.request(self.leader, globs)
        else:
            self.start(self.leader, accept_filters)

    def start(self, leader: Leader, accept_filters: bool) -> None:
        """Prints what the producer would do at its start."""
        if not self.kafka_seen:
            return
        profile, newest = self._profile, self._newest
        entry, change = None, FilterEffect()
        with self._noting():
            pipeline.require_masks(profile, leader, log=self._say_event)
            pipeline.warn_of_cascades(profile, leader, log=self._say_event)
        with self._noting():
            change = self._filters(leader, newest, accept_filters)
        with self._noting():
            filters = profile.filters.listed()
            if change.widened is not None and newest is not None and newest.filters is not None:
                filters = newest.filters
            entry = pipeline.start_of(profile, leader, newest, filters, stop=threading.Event())
            require_same_names(leader, newest)
            self._say(_place(leader, newest, entry, profile.producer.start))
        if entry is None:
            return
        if change.widened is not None:
            self._say(
                "copies first what the filters let in now: the statements that create it, the rows of these tables:"
            )
            with self._noting():
                self._tables(leader, base_tables(self._settings, leader.name, change.widened))
        pending = Pending.from_json(entry.copy).wanted(profile.filters.wants_table)
        if pending.structure:
            self._copy_of_leader(leader)
        elif pending.active:
            self._say("copies, asked for before or not complete yet:")
            with self._noting():
                self._tables(leader, pending.tables)
        elif change.widened is None:
            self._say("copies nothing")

    def _filters(self, leader: Leader, newest: Entry | None, accepted: bool) -> FilterEffect:
        return change_of(
            pipeline.former_filters(newest),
            self._profile.filters,
            ask=pipeline.asked(self._profile, leader),
            accepted=accepted,
            log=self._say_event,
        )

    def _copy_of_leader(self, leader: Leader) -> None:
        self._say(
            "copies the leader: the statements that create what passes the filters, and the rows of these tables:"
        )
        with self._noting():
            tables = copied_tables(self._settings, leader, self._profile.filters)
            with self._noting():
                self._tables(leader, tables)
            structure = creations_of(self._settings, leader, self._profile.filters, tables)
            self._say(f"  {len(structure.creations)} statements")
            for view in structure.invalid:
                self._say(f"  left out, since it is invalid: the view {'.'.join(view)}")

    def has_rights(self) -> bool:
        """Whether the topics that are missing could be created, and our user has the rights that it needs on the
        others; notes what is missing."""
        kafka, before = self._profile.kafka, len(self.errors)
        with self._noting():
            try:
                pipeline.topic_admin(self._profile).require_allowed()
                known = known_topics(kafka.properties(), kafka.topics().first)
            except KafkaException as error:
                raise open_error(error, kafka.topic, kafka.properties(), answered=False) from None
            there = {name: _WRITES for name in kafka.topics().first if name in known}
            groups = _ASKS | ({group_of(self._profile): ["READ"]} if self._profile.producer.standby else {})
            self.errors += missing_rights(kafka.properties(), topics=there, groups=groups)
        return len(self.errors) == before

    def request(self, leader: Leader, globs: Sequence[str]) -> None:
        """Prints which tables a request with ``globs`` would copy."""
        self._say(f"a request to copy {', '.join(globs)} asks for these tables:")
        with self._noting():
            self._tables(leader, matching(self._settings, leader, globs, self._profile.filters))

    def _tables(self, leader: Leader, tables: Sequence[Table]) -> None:
        found = definitions(self._settings, leader.name, tables)
        try:
            with closing(connected(**self._settings)) as connection, connection.cursor() as cursor:
                sizes = estimates(cursor, tables)
        except pymysql.MySQLError as error:
            raise translated(error, leader.name) from None
        for table in found:
            line = _table_line(table, sizes.get((table.database, table.name), Estimate(0, 0)))
            if self._left_out is None:
                self._say(line)
            elif table.refusal is not None:
                self._left_out(line)
        rows, size = (sum(each) for each in zip(*sizes.values(), strict=True)) if sizes else (0, 0)
        self._say(f"  {len(found)} tables, about {rows:,} rows, {_megabytes(size)} (as the leader estimates)")
        if found and all(table.refusal for table in found):
            require_copyable(leader, found)
        require_gtids(leader)

    def _say_event(self, what: str, *, level: int = 0, **fields: object) -> None:
        self._say(f"{what}: " + ", ".join(f"{name} {value}" for name, value in fields.items()))


def _place(leader: Leader, newest: Entry | None, entry: Entry, start: str) -> str:
    gtids = f", GTIDs {entry.gtid_set}" if entry.gtid_set else ""
    at = f"at {entry.position}{gtids}"
    if newest is None or Pending.from_json(newest.copy).structure or Pending.from_json(entry.copy).structure:
        reason = f'producer.start = "{start}"'
        if Pending.from_json(entry.copy).structure and start != "copy":
            reason += f", and the leader {why_copied(leader)}"
        return f"the stream begins {at}: it has no record yet, {reason}"
    why = "the newest entry of the commit log"
    if newest.server_uuid != leader.server_uuid:
        why += ", by its GTIDs since this is another server than before"
    elif newest.position != entry.position:
        why += ", by its GTIDs since the leader's files are others now"
    return f"the stream goes on {at}, with sequence {entry.next_sequence}: {why}"


def _table_line(table: TableDefinition, size: Estimate) -> str:
    name = f"  {table.database}.{table.name}"
    if table.refusal is not None:
        return f"{name}: can't be copied and is left out, {table.refusal}"
    how = "as a whole" if table.whole else f"by {table.key_index} ({', '.join(table.key)})"
    return f"{name}: about {size.rows:,} rows, {_megabytes(size.size)}, read {how}"


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"


def _say(text: str) -> None:
    print(visible(text))
