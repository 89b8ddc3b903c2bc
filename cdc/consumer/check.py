"""Checks all that the consumer needs, and lists what must be changed first (``cdc-consumer PROFILE --check``).

The check acquires no lock, so a consumer may run at the same time. It writes nothing to the follower or to Kafka.
"""

import threading
from contextlib import ExitStack

from cdc.config.profile import Profile
from cdc.consumer import preflight
from cdc.consumer.apply.leader_types import column_error
from cdc.consumer.comparison import Comparison
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import NOT_TAKEN, SWITCH_ON, Session, version_text
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.pipeline import attachment
from cdc.consumer.plan.column_fit import misfits
from cdc.consumer.startup import Startup
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.leader_types import TYPES, parsed
from cdc.kafka.broker_checks import Brokers, missing_rights
from cdc.kafka.follower_places import group_of
from cdc.model.record import Uri
from cdc.service.command_line import CheckList
from cdc.service.retry import Retry

__all__ = ["check"]

# The settings that an audit needs, because it reads the names of columns and all values from the follower's binlog.
_AUDIT = {"binlog_format": "ROW", "binlog_row_metadata": "FULL", "binlog_row_image": "FULL",
          "binlog_row_value_options": ""}  # fmt: skip
_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES LEFT JOIN information_schema.ENGINES "
    "USING (ENGINE) WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE IS NOT NULL AND TRANSACTIONS <> 'YES'"
)
_TRIGGERS = "SELECT DISTINCT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS"
_EVENTS = "SELECT DISTINCT EVENT_SCHEMA FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'"


def check(profile: Profile, *, leader: Profile | None) -> int:
    """Prints the list, and compares the follower's tables with the leader's if the producer's profile ``leader`` is
    given. Returns the exit status, which is 0 or 2.
    """
    items, stop = CheckList(), threading.Event()
    with items.with_log(), ExitStack() as opened:
        session = Session(profile.database, schema=profile.consumer.schema)
        retry = Retry(seconds=0, log=lambda *_, **__: None, stop=stop)
        with items.noting():
            startup = Startup.unconnected(profile, session, opened, retry=retry, stop=stop)
            _Check(startup, items).run(leader)
    return items.end()


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
            self._items.fine(f"the topic goes on after record {checkpoint.sequence}, the follower's last")
        newest = startup.reader.commits(self._profile.kafka.topics().commits)
        startup.require_same_names(leader_folds=newest is not None and newest.folds_names)

    def _objects(self) -> None:
        """Lists triggers, events and tables of engines without transactions that would stop the consumer."""
        session, items, drop = self._session, self._items, self._profile.consumer.triggers == "drop"
        triggers = Triggers(session, drop=False, passes=self._passes)
        tables = SchemaCache(session, triggers, passes=self._passes)
        # The error of one table names the triggers of its whole database.
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
            table, there = Uri(resource, str(database), str(name)), parsed(text)
            here = tables.definitions(table) if self._passes(table) else {}
            if found := misfits(there, here):
                self._items.problem(column_error(table, found))

    def _audit(self) -> None:
        """Lists the settings of the follower that an audit needs."""
        for variable, wanted in _AUDIT.items():
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
        # To a leader that stores names in lower case, its producer's filters mean names in any case.
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
