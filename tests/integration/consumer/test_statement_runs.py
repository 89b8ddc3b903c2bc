"""Statements that follow one another: over one connection, with nothing left of the one before, and few commits."""

import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc.config.profile import load
from cdc.consumer.errors import Interrupted, Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.statement_connection import VARIABLES, StatementConnection
from cdc.consumer.literals.own_variables import own_variables
from cdc.consumer.state.ledger_table import Intent, Intents
from cdc.model.gtid import statement_gtid
from cdc.model.record import Record
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import refused, run, run_well
from tests.harness.topic import Body, Stage, number

pytestmark = pytest.mark.integration

# What no two sessions share, or changes with the time.
OF_THE_SESSION = {"pseudo_thread_id", "rand_seed1", "rand_seed2", "timestamp", "statement_id"}
CHANGES = """\
CREATE TEMPORARY TABLE temporary (i INT)
SET @variable = 5
SELECT LAST_INSERT_ID(7)
PREPARE one FROM 'SELECT 1'
SELECT GET_LOCK('left_by_a_statement', 0)
SET NAMES latin1
SET SESSION sql_mode = 'ANSI_QUOTES', time_zone = '+05:00', foreign_key_checks = 0, unique_checks = 0
SET SESSION lc_time_names = 'de_DE', auto_increment_increment = 7, auto_increment_offset = 3, timestamp = 5
SET SESSION default_storage_engine = 'MyISAM', innodb_strict_mode = 0, restrict_fk_on_non_standard_key = 0
SET SESSION collation_server = 'latin1_german1_ci', collation_connection = 'utf8mb4_bin', insert_id = 9
SET SESSION lock_wait_timeout = 99, innodb_lock_wait_timeout = 98, autocommit = 1, wait_timeout = 97
SET SESSION sql_require_primary_key = 1, sql_generate_invisible_primary_key = 1, default_table_encryption = 0
SET SESSION default_collation_for_utf8mb4 = 'utf8mb4_general_ci', transaction_isolation = 'SERIALIZABLE'
SET gtid_next = '4f3c6a52-0000-5c8b-9b53-2f1f5a1ce7d1:77'"""
STATE = (
    "SELECT @variable, LAST_INSERT_ID(), IS_USED_LOCK('left_by_a_statement'), @@SESSION.gtid_next, CHARSET(''), "
    "COLLATION(''), @@SESSION.warning_count, @@SESSION.last_insert_id"
)


@pytest.fixture
def stage(stage: Stage) -> Stage:
    stage.apply()
    return stage


def state(session: Session) -> tuple[dict[str, str], list[tuple[object, ...]]]:
    variables = dict(session.rows("SHOW SESSION VARIABLES"))
    return {name: value for name, value in variables.items() if name not in OF_THE_SESSION}, session.rows(STATE)


def test_each_variable_of_a_session_is_set_or_known_to_be_harmless(follower: MySql) -> None:
    text = (Path(__file__).parents[2] / "data" / "session_variables.txt").read_text(encoding="utf-8")
    harmless = {word for line in text.splitlines() if "_" in line or " " not in line for word in line.split()}
    with follower.root() as root, root.cursor() as cursor:
        cursor.execute("SHOW SESSION VARIABLES")
        found = {name for name, _ in cursor.fetchall() if _is_of_a_session(cursor, name)}
    known = harmless | set(re.findall(r"(\w+)=", own_variables(lock_wait_seconds=1))) | VARIABLES | {"wait_timeout"}
    # What binlog_format is depends on the server, so it is set where it has to be.
    assert found - known - {"binlog_format"} == set()


def _is_of_a_session(cursor: Any, name: str) -> bool:
    try:
        cursor.execute(f"SET SESSION {name} = DEFAULT")
    except pymysql.MySQLError as error:
        return error.args[0] not in (1229, 1238)  # it is global, or can't be changed at all
    return True


@pytest.mark.newer("restrict_fk_on_non_standard_key")
def test_a_connection_that_is_used_again_has_nothing_of_its_former_life(stage: Stage) -> None:
    with stage.follower.root() as root, root.cursor() as cursor:
        cursor.execute(f"GRANT CREATE TEMPORARY TABLES ON {stage.name}.* TO fluvio@'%'")
    with Session(load(stage.profile).database) as session:
        session.connect()
        connection = StatementConnection(session)
        first = connection.fresh()
        new, thread = state(first), first.thread_id
        assert connection.enter(first, stage.name)
        for statement in CHANGES.splitlines():
            first.rows(statement) if statement.startswith("SELECT") else first.run([statement.encode()])
        changed = state(first)[0]
        assert sum(changed[name] != value for name, value in new[0].items()) > 20
        again = connection.fresh()
        assert again.thread_id == thread
        assert state(again) == new
        assert connection.enter(again, stage.name)
        for statement, error in (("SELECT * FROM temporary", 1146), ("EXECUTE one", 1243)):
            with pytest.raises(Refused) as caught:
                again.rows(statement)
            assert caught.value.code == error
        # A default database alone outlives it, so there the connection is not used again.
        assert not connection.enter(connection.fresh(), "not_there")
        assert connection.opened().rows("SELECT DATABASE()") == [(None,)]
        last = connection.fresh()
        session.close()
        assert not last.connected


def record(stage: Stage, text: str, action: str = "AlterTable", *, at: int = 1_000_000, **context: object) -> Record:
    body = stage.topic.query(text, (action, f"{stage.name}/t"), database=stage.name, timestamp_us=at, **context)
    (made,) = stage.topic.transaction([body])
    return Record.parse(json.dumps(made).encode(), where="here")


def test_between_statements_of_the_same_session_the_connection_is_not_reset(stage: Stage) -> None:
    """It is before and after one that may leave or ask for something, and where the leader's session was another."""
    usual = [record(stage, f"ALTER TABLE t ADD c{at} INT", at=at * 1_000_000) for at in (5, 6)]
    others = [
        record(stage, "ALTER TABLE t ADD c INT DEFAULT (@v := 1)"),
        record(stage, f"ALTER DATABASE {stage.name} CHARACTER SET latin1", "AlterDatabase"),
        record(stage, "ALTER TABLE t ADD c INT", charset="latin1"),
        record(stage, "ALTER TABLE t ADD c INT", sql_mode="ANSI"),
    ]
    with Session(load(stage.profile).database) as session:
        session.connect()
        connection = StatementConnection(session)

        def ready(of: Record) -> Session:
            return connection.ready(of, own="autocommit=1", gtid="AUTOMATIC")

        new = state(ready(usual[0]))
        for at, each in enumerate(usual):
            again = ready(each)
            assert state(again)[0] == new[0] | {"wait_timeout": "77"} if at else new[0]
            assert again.rows("SELECT DATABASE(), @@timestamp") == [(stage.name, 5.0 + at)]
            again.run([b"SET SESSION wait_timeout = 77"])
        for each in others:
            for one in (each, usual[0]):
                assert state(ready(one))[0]["wait_timeout"] != "77", one.query
                ready(one).run([b"SET SESSION wait_timeout = 77"])


def alter(stage: Stage, column: str) -> Body:
    return stage.topic.query(
        f"ALTER TABLE t ADD COLUMN {column} INT", ("AlterTable", f"{stage.name}/t"), database=stage.name
    )


def rows_and_alters(stage: Stage, path: str, names: str) -> list[list[Body]]:
    """Before each ALTER a row of a table without a key, in which a row that is applied twice would show."""
    return [
        [body] for name in names for body in (stage.topic.add(path, ["i"], [number(ord(name))]), alter(stage, name))
    ]


def test_a_connection_lost_at_a_commit_applies_nothing_twice(stage: Stage) -> None:
    stage.create_table("t", "(i INT)")
    path = stage.create_table("rows_of", "(i INT)")
    names = "klmnopqr"
    for at, point in enumerate(("before the intent", "after the intent", "before the commit", "after the commit")):
        first = stage.topic.next_sequence
        stage.topic.send(*rows_and_alters(stage, path, names[2 * at : 2 * at + 2]))
        done = run("killed_consumer", stage.profile, f"lost {point}", str(first + 1))
        assert (done.returncode, " lost" in done.stderr) == (0, True), done.stderr
        assert stage.checkpoint() == first + 3
    assert stage.execute("SELECT i FROM rows_of ORDER BY i") == [(ord(name),) for name in names]
    assert [row[0] for row in stage.execute("SHOW COLUMNS FROM t")] == ["i", *names]


class Lost(Session):
    """A session that may end with each packet, after the server has executed it."""

    lost = False

    def run(self, packet: Sequence[bytes]) -> list[int]:
        """Run the packet."""
        counts = super().run(packet)
        if self.lost:
            raise Interrupted("no answer")
        return counts


def test_numbers_of_intents_are_not_given_again_where_their_commit_is_in_doubt(stage: Stage) -> None:
    """The connections of a server that was restarted have the numbers that earlier ones had."""
    bodies = [body for column in "abc" for body in stage.topic.transaction([alter(stage, column)])]
    records = [Record.parse(json.dumps(body).encode(), where="here") for body in bodies]
    with Lost(load(stage.profile).database) as session:
        session.connect()
        intents = Intents(session)

        def commit(packet: Sequence[bytes]) -> None:
            session.run([*packet, b"COMMIT"])

        session.lost = True
        with pytest.raises(Interrupted):
            intents.intend(records[:2], commit)
        session.lost = False
        found = intents.intend(records, commit)
    assert found == [Intent(statement_gtid(stage.name, at + 2), is_new=at == 2) for at in range(3)]


class Asked(Session):
    """A session that counts its questions."""

    questions = 0

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Count the question."""
        self.questions += 1
        return super().rows(sql)


def test_the_ledger_is_read_once_over_a_connection_unless_it_has_rows_of_later_statements(stage: Stage) -> None:
    bodies = [body for column in "abcdef" for body in stage.topic.transaction([alter(stage, column)])]
    a, b, c, d, e, f = [Record.parse(json.dumps(body).encode(), where="here") for body in bodies]
    with Asked(load(stage.profile).database) as session:
        session.connect()

        def commit(packet: Sequence[bytes]) -> None:
            session.run([*packet, b"COMMIT"])

        def asked(intents: Intents, *records: Record) -> tuple[list[tuple[str, bool]], int]:
            before = session.questions
            found = intents.intend(records, commit)
            numbers = [(gtid.rpartition(":")[2], is_new) for gtid, is_new in found]
            return numbers, session.questions - before

        first = Intents(session)
        assert asked(first, c) == ([("2", True)], 2)  # for the number, and for the rows
        second = Intents(session)
        assert asked(second, a) == ([("3", True)], 2)
        assert asked(second, b) == ([("4", True)], 1)  # the row of a later statement is still to come
        assert asked(second, c, d) == ([("2", False), ("5", True)], 1)
        assert asked(second, d, e) == ([("5", False), ("6", True)], 0)
        assert asked(second, e, f) == ([("6", False), ("7", True)], 0)
        assert asked(second, f) == ([("7", False)], 0)
        assert asked(second, e, f) == ([("6", False), ("7", False)], 1)  # they come again
        session.connect()
        assert asked(second, f) == ([("7", False)], 2)


def test_until_a_place_that_a_killed_consumer_has_passed_is_refused(stage: Stage) -> None:
    """Its statements have run though the checkpoint does not say so."""
    stage.create_table("t", "(i INT)")
    stage.topic.send(*([alter(stage, column)] for column in "abcd"))
    assert run("killed_consumer", stage.profile, "after the statement", "4").returncode == -signal.SIGKILL
    assert stage.checkpoint() == 0
    line = refused("cdc-consumer", stage.profile, "--until", "3")
    assert "the follower has passed 3: a consumer that was killed has executed statement 4 there" in line
    assert stage.checkpoint() == 0
    line = refused("cdc-consumer", stage.profile, "--until", "2024-11-20T18:00:00.000003Z")
    assert "everything before is applied" in line
    assert stage.checkpoint() == 2
    run_well("cdc-consumer", stage.profile, "--until", "4")
    assert [row[0] for row in stage.execute("SHOW COLUMNS FROM t")] == ["i", "a", "b", "c"]
