"""Statements run once, wherever a crash falls, under numbers of their own."""

import signal

import pytest

from cdc.consumer.follower.locks import STATEMENT, lock_name
from cdc.model.gtid import LAST, former_gtid, statement_gtid, statement_uuid
from tests.harness.programs import change_profile, refused, running, schema_rights
from tests.harness.topic import Body, Stage, number
from tests.harness.wait import until

pytestmark = pytest.mark.integration


@pytest.fixture
def stage(stage: Stage) -> Stage:
    stage.apply()
    return stage


def ledger(stage: Stage) -> list[tuple[int, str]]:
    return stage.execute(f"SELECT sequence, state FROM cdc.ledger WHERE resource = '{stage.name}' ORDER BY sequence")


def intend(stage: Stage, sequence: int, statement: str, *, gtid: str) -> None:
    stage.execute(
        "INSERT INTO cdc.ledger (resource, sequence, gtid, state, statement, intended_at) VALUES "
        f"('{stage.name}', {sequence}, '{gtid}', 'intent', '{statement}', NOW(6))"
    )


def executed(stage: Stage, gtid: str) -> bool:
    return stage.execute(f"SELECT GTID_SUBSET('{gtid}', @@GLOBAL.gtid_executed)") == [(1,)]


def numbers(stage: Stage) -> str:
    """The numbers of the statements that were executed, as gtid_executed shows them."""
    ours = f"{statement_uuid(stage.name)}:1-{LAST}"
    ((found,),) = stage.execute(f"SELECT GTID_SUBTRACT('{ours}', GTID_SUBTRACT('{ours}', @@GLOBAL.gtid_executed))")
    return str(found).partition(":")[2]


def alter(stage: Stage, column: str = "a") -> Body:
    statement = f"ALTER TABLE t ADD COLUMN {column} INT"
    return stage.topic.query(statement, ("AlterTable", f"{stage.name}/t"), database=stage.name)


def test_a_crash_after_the_intent_runs_the_statement(stage: Stage) -> None:
    """Under the GTID of the intent, also if it is an earlier version's; none is given again."""
    stage.create_table("t", "(i INT)")
    stage.topic.send(*([alter(stage, column)] for column in "abc"))
    gtids = (former_gtid(stage.name, 1), statement_gtid(stage.name, 7), statement_gtid(stage.name, 6))
    for sequence, gtid in enumerate(gtids):
        intend(stage, sequence + 1, "", gtid=gtid)
    stage.apply()
    assert [row[0] for row in stage.execute("SHOW COLUMNS FROM t")] == ["i", "a", "b", "c"]
    assert ledger(stage) == [(at, "done") for at in range(5)]
    assert all(executed(stage, gtid) for gtid in (*gtids, statement_gtid(stage.name, 8)))


def test_a_crash_after_the_statement_does_not_run_it_again(stage: Stage) -> None:
    stage.create_table("t", "(i INT)")
    stage.apply()
    again = "ALTER TABLE t ADD INDEX (i)"  # the server would run it twice
    for sequence, gtid in ((2, former_gtid(stage.name, 2)), (3, statement_gtid(stage.name, 3))):
        stage.topic.send([stage.topic.query(again, ("AlterTable", f"{stage.name}/t"), database=stage.name)])
        intend(stage, sequence, again, gtid=gtid)
        stage.execute(f"SET gtid_next = '{gtid}'", again)
        stage.apply()
        assert (ledger(stage)[sequence], stage.checkpoint()) == ((sequence, "done"), sequence)
    assert [row[2] for row in stage.execute("SHOW INDEX FROM t")] == ["i", "i_2"]


def test_a_checkpoint_that_was_moved_back_by_hand_runs_nothing_again(stage: Stage) -> None:
    """Nor does a user who may not set gtid_next."""
    stage.create_table("t", "(i INT)")
    again = "ALTER TABLE t ADD INDEX (i)"
    stage.topic.send([stage.topic.query(again, ("AlterTable", f"{stage.name}/t"), database=stage.name)])
    stage.apply()
    stage.execute(
        f"UPDATE cdc.checkpoint SET sequence = 1, leader_file = NULL WHERE resource = '{stage.name}'", "COMMIT"
    )
    for rights in ({}, schema_rights(stage.follower, stage.name)):
        change_profile(stage.profile, **rights)
        line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
        assert "the checkpoint in the follower has been moved by something else" in line
        assert [row[2] for row in stage.execute("SHOW INDEX FROM t")] == ["i"]


def test_statements_are_one_interval_whatever_comes_between_them(stage: Stage) -> None:
    """Rows, statements that are left out, and one that an earlier version ran take no number."""
    path = stage.create_table("t", "(i INT)")
    stage.topic.send([stage.topic.add(path, ["i"], [number(1)])])
    trigger = "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.i = 5"
    stage.topic.send([stage.topic.query(trigger, ("CreateTrigger", f"{stage.name}/x"), database=stage.name)])
    intend(stage, 4, "ALTER TABLE t ADD COLUMN a INT", gtid=former_gtid(stage.name, 4))
    stage.topic.send([alter(stage)])
    stage.apply()
    assert numbers(stage) == "1-2"
    stage.create_table("u", "(i INT)")
    stage.apply()
    assert numbers(stage) == "1-3"
    assert executed(stage, former_gtid(stage.name, 4))
    shown = stage.execute(f"SELECT sequence, gtid FROM cdc.ledger WHERE resource = '{stage.name}' ORDER BY 1")
    given = {0: 1, 1: 2, 5: 3}
    assert shown == [
        (at, former_gtid(stage.name, 4) if at == 4 else statement_gtid(stage.name, given[at]) if at in given else "")
        for at in (0, 1, 3, 4, 5)
    ]
    # As after a checkpoint that was put back by hand: the last row does not have the last number.
    intend(stage, 99, "", gtid=statement_gtid(stage.name, 2))
    stage.create_table("v", "(i INT)")
    stage.apply()
    assert numbers(stage) == "1-4"


def test_a_kill_in_a_statement_that_waits_does_not_run_it_twice(stage: Stage) -> None:
    """The next consumer comes to the statement while the server has it still waiting, for a connection that is gone."""
    kill_while_it_waits(stage, "SET SESSION auto%gtid_next")
    assert executed(stage, statement_gtid(stage.name, 3))


def test_nor_does_it_without_gtids_of_its_own(stage: Stage) -> None:
    """A user who may not set gtid_next waits for the lock of the connection, then finds the statement in the binlog."""
    change_profile(stage.profile, **schema_rights(stage.follower, stage.name))
    kill_while_it_waits(stage, f"SELECT GET_LOCK(''{lock_name(stage.name, STATEMENT)}'', 5")
    assert numbers(stage) == "1"  # of the CREATE DATABASE before


def kill_while_it_waits(stage: Stage, next_one: str) -> None:
    """Kills a consumer whose statement waits for a lock; ``next_one`` is where the next consumer waits for its end."""
    path = stage.create_table("t", "(i INT)")
    stage.apply()
    with stage.follower.connect(database=stage.name, autocommit=False) as holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM t")  # holds the metadata lock that the statement needs
        with running("cdc-consumer", stage.profile) as first:
            until(lambda: lock_holder(stage), what="the first one at work")
            before = lock_holder(stage)
            # The next one stands at the lock already: the statement waits for lock_wait_timeout only.
            with running("cdc-consumer", stage.profile):
                until(lambda: runs(stage, "SELECT GET_LOCK"), what="the next one at the lock")
                stage.topic.send([alter(stage)], [stage.topic.add(path, ["i", "a"], [number(1), number(2)])])
                until(lambda: runs(stage, "ALTER TABLE t ADD"), what="the statement waits")
                first.send_signal(signal.SIGKILL)
                until(lambda: runs(stage, next_one), what="the next one comes to the statement")
                assert lock_holder(stage) not in (None, before)
                assert runs(stage, "ALTER TABLE t ADD")
                assert "a" not in [row[0] for row in stage.execute("SHOW COLUMNS FROM t")]
                holder.rollback()
                until(lambda: stage.checkpoint() == 3, what="the row after the statement")
    assert stage.execute("SELECT * FROM t") == [(1, 2)]
    assert ledger(stage) == [(0, "done"), (1, "done"), (2, "done")]


def runs(stage: Stage, statement: str) -> bool:
    """Whether a session is at a statement that begins so."""
    at = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE '{statement}%'"
    return stage.execute(at) != []


def lock_holder(stage: Stage) -> int | None:
    """The connection of the consumer that is at work."""
    ((found,),) = stage.execute(f"SELECT IS_USED_LOCK('{lock_name(stage.name)}')")
    return None if found is None else int(found)


def test_a_statement_of_a_former_life_is_not_taken_for_done(stage: Stage) -> None:
    stage.create_table("t", "(i INT)")
    for gtid in (statement_gtid(stage.name, 9), former_gtid(stage.name, 1)):
        stage.execute(f"SET gtid_next = '{gtid}'", "BEGIN", "COMMIT")
        line = refused("cdc-consumer", stage.profile, "--until-current")
        assert "has executed" in line
        assert gtid in line
