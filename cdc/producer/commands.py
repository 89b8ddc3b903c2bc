"""Runs the commands of ``cdc-producer`` other than replication: a dry run, a list of checks, requests for copies of
tables, and the status of copies.

A dry run and the checks write nothing to Kafka, to the leader or to disk, and do not disturb a running producer.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain

import pymysql
from confluent_kafka import KafkaException

from cdc.config.profile import Profile
from cdc.config.table_globs import selected
from cdc.errors import CdcError, UserError
from cdc.kafka.broker_checks import missing_rights
from cdc.kafka.errors import open_error
from cdc.kafka.follower_places import places_now
from cdc.kafka.partitions import backwards
from cdc.kafka.topics import known_topics
from cdc.model.commit_entry import Entry
from cdc.model.values import visible
from cdc.producer import filter_checks, pipeline
from cdc.producer.binlog.leader import Leader, translated
from cdc.producer.copy.definition import TableDefinition
from cdc.producer.copy.progress_log import ProgressLog
from cdc.producer.copy.requests import (
    Estimate,
    Request,
    State,
    estimates,
    follower_lines,
    lines,
    waiting,
    write_request,
)
from cdc.producer.copy.selection import (
    base_tables,
    definitions,
    matching,
    require_copyable,
    require_gtids,
    selected_tables,
)
from cdc.producer.copy.state import Pending, Table
from cdc.producer.copy.structure import copied_tables, creations_of
from cdc.producer.filter_changes import FilterEffect, change_of
from cdc.producer.resume import require_same_names, why_copied
from cdc.producer.standby import group_of
from cdc.producer.streams_beside import require_shares
from cdc.service.command_line import CheckList
from cdc.service.logs import print_error
from cdc.service.mysql_connection import connected

__all__ = ["ask_for_copies", "check", "copy_status", "current_state", "dry_run", "stop_copies"]

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
            filter_checks.require_masks(profile, leader, log=self._say_event)
            filter_checks.require_row_filters(profile, leader, newest=newest, log=self._say_event)
            filter_checks.warn_of_cascades(profile, leader, log=self._say_event)
            require_shares(profile, leader, log=self._say_event)
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
            filter_checks.former_filters(newest),
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
            for each in structure.left_out:
                self._say(f"  left out, since it names a column that is left out: {'.'.join(each)}")

    def has_rights(self) -> bool:
        """Whether the missing topics could be created, and our user has the needed rights on all other topics; notes
        what is missing."""
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
    return f"the stream continues {at}, with sequence {entry.next_sequence}: {why}"


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


# Asks the running producer, or the next one that starts, to begin or stop copies of tables, and prints the status of
# copies.
#
# The status is read from the commit log, whether the producer runs or not.

_STOP = "--copy-stop"


def ask_for_copies(profile: Profile, globs: Sequence[str], *, log: Callable[..., None]) -> int:
    """Requests a copy of the tables that match ``globs``; returns the exit status. Raises UserError and
    Disconnected."""
    leave_out = partial(ProgressLog(log).left_out, repair=False)
    leader = pipeline.find_leader(profile)
    filters = pipeline.as_on_leader(profile, leader).filters
    tables = selected_tables(profile.database.settings(), leader, globs, filters, leave_out)
    write_request(profile.kafka, profile.mysql_resource_name, tables)
    log("asked for a copy", tables=len(tables))
    return 0


def stop_copies(profile: Profile, globs: Sequence[str], *, log: Callable[..., None]) -> int:
    """Requests the end of the copies of all tables that match ``globs``; returns the exit status.

    Raises Disconnected, and UserError if no such table is waiting to be copied, or if followers have no rows of such a
    table except the copied rows.
    """
    pending, requests = current_state(profile)
    asked = {table for request in requests if not request.stop for table in request.tables}
    known = pending or Pending()
    tables = selected(dict.fromkeys((*known.tables, *sorted(asked))), globs, key=_STOP)
    if not tables:
        raise UserError(
            f"no table that is to be copied matches {', '.join(globs)}",
            code="CDC-COPY-NOT-REQUESTED",
            where=_STOP,
            hint="cdc-producer PROFILE --copy-status names those that are",
        )
    if first := [".".join(table) for table in tables if table in known.fresh]:
        raise UserError(
            "these copies can't be stopped, because followers get the tables' rows only from the first copy of the "
            f"leader: {', '.join(first)}",
            code="CDC-COPY-OF-LEADER",
            where=_STOP,
            hint="let the copy end; or leave the tables out with the filters, and start the producer again",
        )
    if known.is_emptied and known.current in tables:
        raise UserError(
            f"followers have removed all rows of {'.'.join(known.current)}, and get those of the leader now",
            code="CDC-COPY-EMPTIED-TABLE",
            where=_STOP,
            hint="let the copy end; or leave the table out with the filters, and start the producer again: followers "
            "then lack rows of it",
        )
    write_request(profile.kafka, profile.mysql_resource_name, tables, stop=True)
    log("asked to stop copies", tables=len(tables))
    return 0


_MOST = 2_000  # the maximum number of entries to read


def copy_status(profile: Profile) -> int:
    """Prints the status of copies; returns the exit status. Raises UserError and Disconnected."""
    states = list(_states(profile))
    if not states:
        print("no commit log yet: the producer has not run, or the ACL READ on its topics is missing")
        return 0
    asked = _waiting(profile, states[0].pending)
    tables = {table for state in states for table in state.pending.tables} | {each for one in asked for each in one[0]}
    try:
        with closing(connected(**profile.database.settings())) as connection, connection.cursor() as cursor:
            sizes = estimates(cursor, sorted(tables))
    except pymysql.MySQLError as error:
        raise translated(error, str(profile.database)) from None
    for line in chain(lines(states, asked, sizes, now=time.time()), _followers(profile, states[0])):
        print(visible(line))
    return 0


def _followers(profile: Profile, newest: State) -> Iterator[str]:
    """Yields a line for each follower that a copy may have to wait for; yields nothing if no table is being copied."""
    if not newest.pending.active:
        return
    kafka = profile.kafka
    try:
        places = places_now(kafka.properties(), resource=profile.mysql_resource_name, topic=kafka.topic)
    except KafkaException as error:
        yield f"the progress of followers is not known: {error.args[0].str()}"
        return
    yield from follower_lines(places, newest.next_sequence)


def current_state(profile: Profile) -> tuple[Pending | None, list[Request]]:
    """Reads the pending copies (None before the stream begins), and the requests that no producer has processed yet."""
    newest = next(_states(profile), None)
    pending = newest.pending if newest else None
    return pending, _waiting(profile, pending or Pending())


def _waiting(profile: Profile, pending: Pending) -> list[Request]:
    kafka = profile.kafka
    return waiting(kafka.properties(), kafka.topics().copies, resource=profile.mysql_resource_name, pending=pending)


def _states(profile: Profile) -> Iterator[State]:
    """Yields the states of copies in the commit log, newest first, back to a state in which no table was
    being copied.
    """
    kafka = profile.kafka
    commits = kafka.topics().commits
    try:
        if pipeline.topic_admin(profile).look(profile.mysql_resource_name) is None:
            return
        for number, message in enumerate(backwards(kafka.properties(), (commits, 0))):
            if not message.value():
                continue
            entry = Entry.parse(message.value() or b"", where=f"topic {commits}, offset {message.offset()}")
            yield State(message.timestamp()[1] / 1000, Pending.from_json(entry.copy), entry.next_sequence)
            if number >= _MOST or (number and not Pending.from_json(entry.copy).active):
                return
    except KafkaException as error:
        raise open_error(error, commits, kafka.properties(), answered=False) from None
