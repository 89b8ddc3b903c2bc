"""XA transactions become changes where they commit."""

import pytest

from cdc.model.commit_entry import PreparedXa
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.decode.changes import Damaged, Idle, PositionAdvanced, Prepared
from tests.generators.binlog_events import FILE, NO_ZEROS_AND_TRUNCATED, UUID, Log
from tests.harness.decoding import Leader, added, begin, commit, decoded, kinds, plain, refusal

XID = "X'61',X'62',1"


def xa(*values: int, end: bool = True) -> Log:
    log = Log(at=200)
    log.gtid(5)
    log.query(f"XA START {XID}", mode=NO_ZEROS_AND_TRUNCATED)
    log.table_map()
    log.rows(*values)
    if end:
        log.query(f"XA END {XID}")
    return log


PLACE = PreparedXa(f"{UUID}:5", FILE, 200, "NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL")


@pytest.mark.parametrize("one_by_one", [False, True])
def test_an_xa_transaction_comes_with_its_commit(one_by_one: bool) -> None:
    log = xa(1, 2)
    prepared = log.prepare()
    log.transaction(3)
    log.gtid(6)
    last = log.query(f"XA COMMIT {XID}")
    leader = Leader()
    found = plain(leader.decode(*([event] for event in log.events)) if one_by_one else leader.decode(log.events))
    assert found[0] == Prepared(XID, PLACE, Position(FILE, prepared.end))
    assert found[1:4] == [begin(), added(3), found[3]]
    assert found[4:] == [begin(6, PLACE.sql_mode), added(1, 2), commit(last, XID)]
    assert leader.read == []


def test_an_xa_transaction_keeps_its_table_maps_for_a_commit_in_another_file() -> None:
    log = xa(1)
    log.prepare()
    log.add(et.FORMAT_DESCRIPTION)
    log.gtid(6)
    last = log.query(f"XA COMMIT {XID}")
    assert plain(decoded(log.events))[1:] == [begin(6, PLACE.sql_mode), added(1), commit(last, XID)]


def test_an_xa_transaction_may_commit_in_one_phase() -> None:
    log = xa(1)
    last = log.prepare(one_phase=1)
    assert plain(decoded(log.events)) == [begin(5, PLACE.sql_mode), added(1), commit(last, XID)]


def test_an_xa_transaction_that_is_rolled_back_is_empty() -> None:
    log = xa(1)
    log.prepare()
    log.gtid(6)
    last = log.query(f"XA ROLLBACK {XID}")
    assert plain(decoded(log.events))[1:] == [begin(6, None), commit(last, XID)]
    log.gtid(7)
    log.query(f"XA COMMIT {XID}")
    assert "it was prepared before the producer's start" in refusal(decoded(log.events)).error.what


def test_the_xid_of_an_end_is_of_that_end_alone() -> None:
    log = xa(1)
    log.prepare()
    log.gtid(6)
    log.query(f"XA ROLLBACK {XID}")
    log.transaction(1)
    assert plain(decoded(*[[event] for event in log.events]))[-1].xid is None


def test_transactions_do_not_interrupt_an_xa_transaction() -> None:
    for start in (Log.gtid, Log.begin):
        log = xa(1)
        start(log)
        log.add(et.IGNORABLE)
        with pytest.raises(Damaged):
            decoded(log.events)
    log = xa(1)
    log.query("CREATE TABLE t (i INT)")
    with pytest.raises(Damaged):
        decoded(log.events)


@pytest.mark.parametrize("text", ["INSERT INTO t VALUES (2)", "ROLLBACK TO `s`"])
def test_a_statement_of_an_xa_transaction_is_held_and_refused_at_its_end(text: str) -> None:
    """MariaDB logs rows that were rolled back to a savepoint with a temporary table, and then that."""
    log = xa(1, end=False)
    log.query("SAVEPOINT `s`")
    log.query(text)
    log.query(f"XA END {XID}")
    log.prepare()
    log.gtid(6)
    log.query(f"XA COMMIT {XID}")
    found = plain(decoded(log.events))
    assert kinds(found) == ["Prepared", "Begin", "tuple", "Refused", "Commit"]


def test_rows_in_other_layouts_are_held_by_an_xa_transaction_too() -> None:
    log = xa(1, end=False)
    log.rows(1, kind=39)
    log.prepare()
    log.gtid(6)
    log.query(f"XA COMMIT {XID}")
    found = plain(decoded(log.events))
    assert kinds(found) == ["Prepared", "Begin", "tuple", "Refused", "Commit"]


@pytest.mark.parametrize("verb", ["START", "COMMIT", "ROLLBACK"])
def test_an_xa_statement_needs_a_gtid(verb: str) -> None:
    log = xa(1)
    log.prepare()
    event = log.query(f"XA {verb} {XID}")
    with pytest.raises(Damaged, match="has no GTID event") as caught:
        decoded(log.events)
    assert caught.value.where == f"{FILE}:{event.offset}"


def test_the_verb_of_an_xa_statement_is_its_second_word() -> None:
    log = xa(1)
    log.prepare()
    log.gtid(6)
    last = log.query(f"XA COMMIT {XID} ONE PHASE")
    assert plain(decoded(log.events))[1:] == [begin(6, PLACE.sql_mode), added(1), commit(last, XID)]


def test_an_xa_statement_without_an_xid_is_refused() -> None:
    log = Log()
    log.gtid()
    log.query("XA COMMIT 'a'")
    found = decoded(log.events)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    refused = refusal(found)
    assert refused.error.what.startswith("event 2 (Query) cannot be read: ValueError(")


def test_an_xa_statement_of_another_kind_is_refused() -> None:
    other = Log()
    other.gtid()
    other.query(f"XA JOIN {XID}")
    found = decoded(other.events)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    refused = refusal(found)
    assert "the statement is not known" in refused.error.what


def test_after_a_prepared_transaction_nothing_is_under_way() -> None:
    log = xa(1)
    log.prepare()
    beat = log.heartbeat()
    assert decoded(log.events, [])[-2:] == [PositionAdvanced(Position(FILE, beat.end)), Idle(False)]
