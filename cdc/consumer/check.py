"""Checks all that the consumer needs, lists what must be changed first (``cdc-consumer PROFILE --check``), and compares
the definitions of both servers' tables.

The check acquires no lock, so a consumer may run at the same time. It writes nothing to the follower or to Kafka.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack

from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.consumer import preflight
from cdc.consumer.apply.leader_types import column_error
from cdc.consumer.follower import audit_needs
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import NOT_TAKEN, SWITCH_ON, Session, version_text
from cdc.consumer.follower.table_definitions import Definitions, table_definitions
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.literals.values import identifier
from cdc.consumer.pipeline import attachment
from cdc.consumer.plan.column_fit import misfits
from cdc.consumer.startup import Startup
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.own_table import TYPES, parsed_types
from cdc.errors import UserError
from cdc.kafka.broker_checks import Brokers, missing_rights
from cdc.kafka.follower_places import group_of
from cdc.model.names import folded
from cdc.model.record import Uri
from cdc.service.command_line import CheckList
from cdc.service.retry import Retry
from cdc.sql.create_table import differences, with_folded_names

__all__ = ["Comparison", "check", "list_problems"]

# Compares the definitions of the follower's tables with the leader's; both servers are queried.

_OTHER_DATABASE = re.compile(r"(?<=REFERENCES )`((?:[^`]|``)+)`(?=\.)")
Table = tuple[str, str]


class Comparison:
    """Compares all tables that pass the filters of both profiles. ``profile`` is the consumer's, ``leader`` the
    producer's; ``folds`` is true if the follower stores all names in lower case.

    Raises UserError if the two profiles do not belong to one stream.
    """

    def __init__(self, profile: Profile, leader: Profile, renames: Renames, *, folds: bool) -> None:
        _require_one_stream(profile, leader)
        self._profile = profile
        self._leader = leader
        self._renames = renames
        self._folds = folds
        self._compared = 0
        self._ours = self._theirs = Definitions({}, is_mysql=True)

    def read(self) -> None:
        """Reads the definitions from both servers, the leader's first. If a table is altered between the two reads, the
        follower may already have the new definition. The topic then contains the statement, so the caller reports a lag
        instead of a problem. Raises UserError.
        """
        self._theirs = table_definitions(self._leader.database, wants=self._wanted)
        theirs = {self._name(*table) for table in self._theirs.tables}
        # A follower that folds names shows them in lower case; the leader's filters may contain them in any case.
        leader = self._leader.filters.folded() if self._folds else self._leader.filters
        own, ours = self._profile.consumer.schema, self._profile.filters

        def wanted(database: str, table: str) -> bool:
            former = self._renames.former(database), table
            is_replicated = database != own and leader.wants_table(*former) and ours.wants_table(*former)
            return is_replicated or (database, table) in theirs

        self._ours = table_definitions(self._profile.database, wants=wanted)

    def errors(self) -> Iterator[UserError]:
        """Yields an error for each table that only one server has, or that they define differently."""
        theirs = {self._name(*table): (table, self._text(text)) for table, text in self._theirs.tables.items()}
        for name in sorted(theirs.keys() | self._ours.tables.keys()):
            self._compared += 1
            if name not in theirs:
                yield _only_here(name, self._profile)
            elif name not in self._ours.tables:
                yield _only_there(name, theirs[name][0], self._profile)
            elif self._theirs.is_mysql and (error := self._different(name, theirs[name][1])):
                yield error

    def summary(self) -> str:
        """Returns a sentence that describes what was compared."""
        what = "the definitions" if self._theirs.is_mysql else "the names, not the definitions of a MariaDB leader,"
        return f"{what} of {self._compared} tables were compared with the leader {self._leader.database}"

    def _different(self, name: Table, there: str) -> UserError | None:
        here = self._ours.tables[name]
        here = with_folded_names(here) if self._folds else here
        found = differences(here, there, any_engine=self._profile.consumer.engine != "keep")
        if not found:
            return None
        table = ".".join(map(identifier, name))
        return UserError(
            f"{'.'.join(name)} is not defined as on the leader: {'; '.join(each.what for each in found)}",
            code="CDC-CHECK-DEFINITION",
            where=str(self._profile.database),
            hint=f"on the follower: ALTER TABLE {table} {', '.join(each.change for each in found if each.change)}",
        )

    def _wanted(self, database: str, table: str) -> bool:
        """Whether a table of the leader passes the producer's and the consumer's filters."""
        names = (folded(database), folded(table)) if self._folds else (database, table)
        return self._leader.filters.wants_table(database, table) and self._profile.filters.wants_table(*names)

    def _name(self, database: str, table: str) -> Table:
        """Returns the follower's name for a table of the leader."""
        names = (folded(database), folded(table)) if self._folds else (database, table)
        return self._renames.new(names[0]), names[1]

    def _text(self, definition: str) -> str:
        """Returns the leader's definition with the follower's names of databases and tables."""
        definition = with_folded_names(definition) if self._folds else definition
        return _OTHER_DATABASE.sub(lambda found: identifier(self._renames.new(found[1].replace("``", "`"))), definition)


def _require_one_stream(profile: Profile, leader: Profile) -> None:
    for key, ours, theirs in (
        ("mysql_resource_name", profile.mysql_resource_name, leader.mysql_resource_name),
        ("kafka.topic", profile.kafka.topic, leader.kafka.topic),
    ):
        if ours != theirs:
            raise UserError(
                f"the leader's profile is of another stream: {ours!r} here, {theirs!r} there",
                code="CDC-CHECK-OTHER-STREAM",
                where=f"option --leader, profile key {key}",
                hint="give the profile of the cdc-producer that writes this consumer's topic",
            )


def _only_here(name: Table, profile: Profile) -> UserError:
    return UserError(
        f"{'.'.join(name)} is not on the leader",
        code="CDC-CHECK-DEFINITION",
        where=str(profile.database),
        hint="drop it on the follower, or leave it out with the filters: a table that the leader creates under that "
        "name would stop the consumer",
    )


def _only_there(name: Table, table: Table, profile: Profile) -> UserError:
    return UserError(
        f"{'.'.join(name)} is missing on the follower",
        code="CDC-CHECK-DEFINITION",
        where=str(profile.database),
        hint="create it on the follower with the leader's SHOW CREATE TABLE, then have its rows copied: cdc-producer "
        f"PROFILE --copy '{'.'.join(table)}'",
    )


_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES LEFT JOIN information_schema.ENGINES "
    "USING (ENGINE) WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE IS NOT NULL AND TRANSACTIONS <> 'YES'"
)
_TRIGGERS = "SELECT DISTINCT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS"
_EVENTS = "SELECT DISTINCT EVENT_SCHEMA FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'"


def check(profile: Profile, *, leader: Profile | None) -> int:
    """Prints all that must be changed before the consumer can run. If the producer's profile ``leader`` is given,
    compares the follower's tables with the leader's, too. Returns the exit status, which is 0 or 2.
    """
    items = CheckList()
    list_problems(items, profile, leader=leader)
    return items.end()


def list_problems(items: CheckList, profile: Profile, *, leader: Profile | None) -> None:
    """Prints the items of ``check``."""
    stop = threading.Event()
    with items.with_log(), ExitStack() as opened:
        retry = Retry(seconds=0, log=lambda *_, **__: None, stop=stop)
        with items.noting():
            profile = preflight.found_follower(profile)
            session = Session(profile.database, schema=profile.consumer.schema)
            startup = Startup.unconnected(profile, session, opened, retry=retry, stop=stop)
            _Check(startup, items).run(leader)


class _Check:
    """Runs the checks, the cheap ones first. It continues after an error, so that all errors are listed."""

    def __init__(self, startup: Startup, items: CheckList) -> None:
        self._startup = startup
        self._session = startup.session
        self._profile = startup.profile
        self._items = items

    def run(self, leader: Profile | None) -> None:
        """Runs all checks; ``leader`` is the producer's profile, None if it was not given."""
        items, checkpoint = self._items, None
        with items.noting():
            self._follower()
        with items.noting():
            self._brokers()
        if not self._session.connected:
            return
        with items.noting():
            checkpoint = preflight.read_checkpoint(self._session, resource=self._profile.mysql_resource_name)
        with items.noting():
            self._topics(checkpoint)
        for step in (self._objects, self._columns, self._audit):
            with items.noting(), preflight.answering(str(self._profile.database)):
                step()
        if leader is not None:
            with items.noting():
                self._definitions(leader, checkpoint)

    def _follower(self) -> None:
        """Connects to the follower, and lists the settings and grants that must be changed."""
        session, name = self._session, str(self._profile.database)
        problems = preflight.problems(session, name=name)
        self._items.fine(f"the follower {name} answers: MySQL {version_text(session.version)}")
        for problem in problems:
            self._items.problem(problem)
        with preflight.answering(name):
            preflight.log_notes(session)
            if not session.local_infile:
                self._items.note(NOT_TAKEN, hint=SWITCH_ON)

    def _brokers(self) -> None:
        """Reads the topics, and lists missing topics and missing rights of the profile's Kafka user."""
        kafka, resource, database = self._profile.kafka, self._profile.mysql_resource_name, self._profile.database
        self._startup.reader.topics(kafka.topics().first)
        self._items.fine(f"Kafka {kafka.bootstrap_servers} answers")
        groups = {group_of(resource, f"{database.ip_or_host}:{database.port}"): ("READ",), "cdc-producer": ("READ",)}
        topics = dict.fromkeys(kafka.topics().first, ("READ",))
        for error in missing_rights(kafka.properties(), topics=topics, groups=groups):
            self._items.problem(error)

    def _topics(self, checkpoint: Checkpoint | None) -> None:
        """Checks that the topics contain all records after the follower's checkpoint or, for a new follower, all
        records that it needs.
        """
        startup, topic = self._startup, self._startup.source.topic()
        if topic is None:
            return  # ``_brokers`` has already listed the missing topic
        if checkpoint is None:
            new = Checkpoint(self._profile.mysql_resource_name, topic.name, topic.id, schema=self._session.schema)
            startup.continued(new, topic, continues=False)
            attachment(self._profile, startup.reader).check(self._session)
            self._items.fine("the follower is new to this leader: the topic has all records that it needs")
        else:
            startup.continued(checkpoint, topic)
            self._items.fine(f"the topic continues after record {checkpoint.sequence}, the follower's last")
        newest = startup.reader.commits(self._profile.kafka.topics().commits)
        startup.require_same_names(leader_folds=newest is not None and newest.folds_names)

    def _objects(self) -> None:
        """Lists triggers, events and tables of engines without transactions that would stop the consumer."""
        session, items, drop = self._session, self._items, self._profile.consumer.triggers == "drop"
        triggers = Triggers(session, drop=False, passes=self._passes)
        tables = SchemaCache(session, triggers, passes=self._passes)
        # One table of each database is checked, because the error names the triggers of the whole database.
        of_databases = {each.database: each for each in ([] if drop else self._replicated(_TRIGGERS))}
        for found in of_databases.values():
            with items.noting():
                triggers.check_triggers(found)
        for found in self._replicated(_EVENTS):
            with items.noting():
                triggers.check_events(found)
        for found in self._replicated(_TABLES)[:1]:  # the error for one table names all other tables
            with items.noting():
                tables.check_engine(found)

    def _columns(self) -> None:
        """Lists the columns that could store other values than the leader's columns, whose types are known from
        records.
        """
        session, resource = self._session, self._profile.mysql_resource_name
        if not session.rows(TYPES.exists(session.schema)):
            return
        tables = SchemaCache(session, Triggers(session, drop=False, passes=self._passes), passes=self._passes)
        columns = "database_name, table_name, columns_json"
        for database, name, text in session.rows(TYPES.select(session.schema, resource, columns)):
            table, there = Uri(resource, str(database), str(name)), parsed_types(text)
            here = tables.definitions(table) if self._passes(table) else {}
            if found := misfits(there, here):
                self._items.problem(column_error(table, found))

    def _audit(self) -> None:
        """Lists the settings of the follower that an audit needs."""
        for variable, wanted in audit_needs.SETTINGS.items():
            value = str(self._session.rows(f"SELECT @@GLOBAL.{variable}")[0][0])
            if value != wanted:
                self._items.note(
                    f"an audit can't read this follower's binlog: {variable} is {value or 'empty'}",
                    hint=f"before the consumer's first start, on the follower: SET PERSIST {variable} = '{wanted}'",
                )
        preflight.log_missing_capture(self._session)

    def _definitions(self, leader: Profile, checkpoint: Checkpoint | None) -> None:
        """Compares the definitions of the follower's tables with the leader's."""
        if checkpoint is None and not self._profile.consumer.start:
            self._items.note(
                "the tables' definitions are not compared: the follower is new, and the topic creates them"
            )
            return
        brokers, commits = Brokers(self._profile.kafka.properties()), self._profile.kafka.topics().commits
        newest = brokers.commits(commits)
        # If the leader stores names in lower case, its producer's filters match names in any case.
        leader = leader.folded() if newest is not None and newest.folds_names else leader
        compare = Comparison(self._startup.scope, leader, self._startup.renames, folds=self._session.folds_names)
        compare.read()
        following = brokers.next_sequence(commits)
        behind = (following or 0) - 1 - (-1 if checkpoint is None else checkpoint.sequence)
        for error in compare.errors():
            if behind > 0:
                more = f"; {behind} records that the follower has not applied yet may change that"
                self._items.note(f"{error.what}{more}", hint=error.hint)
            else:
                self._items.problem(error)
        self._items.fine(compare.summary())

    def _passes(self, table: Uri) -> bool:
        """Whether a table is replicated; ``table`` is its name on the follower."""
        scope = self._startup.scope
        return table.database != scope.consumer.schema and scope.filters.wants(
            self._startup.renames.former(table.database), table.table
        )

    def _replicated(self, question: str) -> list[Uri]:
        rows = self._session.rows(question)
        found = [Uri(self._profile.mysql_resource_name, *map(str, row)) for row in rows]
        return [each for each in found if self._passes(each)]
