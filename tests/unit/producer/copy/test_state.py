"""Which tables are still to be copied, after chunks and statements."""

import json
from dataclasses import replace

import pytest

from cdc.producer.copy.state import Pending, RecordState, Table
from cdc.sql.statement import classify

A, B, C = ("db", "a"), ("db", "b"), ("db", "c")
_MIDDLE = Pending(fresh=(A,), again=(B,), after=("1",), written=4, rows=9)


def _after(pending: Pending, statement: str) -> Pending:
    return pending.after_statement(classify(statement, database="db", ansi_quotes=False, backslash_escapes=True)[1])


def test_tables_come_one_after_the_other() -> None:
    pending = Pending(fresh=(A,)).asked([B, A], requests=7)
    assert (pending.current, pending.incomplete) == (A, {A, B})
    pending = pending.chunk_written(("7",), 3)
    assert (pending.current, pending.after, pending.rows, pending.written) == (A, ("7",), 3, 1)
    pending = pending.chunk_written(None, 1)
    assert (pending.current, pending.after, pending.rows, pending.incomplete) == (B, None, 0, {B})
    pending = pending.chunk_written(("7",), 3)
    assert pending.incomplete == {B}
    pending = pending.chunk_written(None, 0)
    assert (pending.current, pending.incomplete, pending.written, pending.requests) == (None, frozenset(), 4, 7)


@pytest.mark.parametrize("pending", [Pending(), _MIDDLE])
@pytest.mark.parametrize("now", [(None, ""), ({"include_tables": ["db.*"]}, "u:1-7")])
def test_the_state_in_a_record_is_kept_as_json(pending: Pending, now: tuple[dict[str, list[str]] | None, str]) -> None:
    state = RecordState(pending, *now)
    assert RecordState.parse(state.text()) == state


def test_statements_at_the_beginning_count_as_written() -> None:
    pending = Pending(structure=True, again=(A, C), written=2).begun_with([B, A], statements=5)
    assert pending == Pending(fresh=(B, A), again=(C,), written=7)


@pytest.mark.parametrize(
    "pending",
    [
        *(Pending(), _MIDDLE, Pending(written=3), Pending(repairs=2), Pending(fresh=(A,), after=())),
        Pending(again=(("d.`é", 'x"'),), requests_topic="id"),
    ],
)
def test_the_state_is_kept_as_json(pending: Pending) -> None:
    assert Pending.from_json(json.loads(json.dumps(pending.to_json()))) == pending


@pytest.mark.parametrize(
    ("statement", "fresh", "again", "begins_anew"),
    [
        ("ALTER TABLE a ADD x INT", (A,), (B,), True),
        ("ALTER TABLE b ADD x INT", (A,), (B,), False),
        ("DROP INDEX `PRIMARY` ON a", (A,), (B,), True),
        ("TRUNCATE a", (A,), (B,), True),
        ("ALTER TABLE other ADD x INT", (A,), (B,), False),
        ("CREATE TABLE other (x INT)", (A,), (B,), False),
        ("DROP TABLE b", (A,), (), False),
        ("DROP TABLE other, a", (), (B,), True),
        ("DROP DATABASE db", (), (), True),
        ("DROP DATABASE other", (A,), (B,), False),
        ("RENAME TABLE a TO c", (C,), (B,), True),
        ("ALTER TABLE a RENAME c, ADD x INT", (C,), (B,), True),
        ("RENAME TABLE b TO c", (A,), (C,), False),
        # As an online schema change ends: both the table of now and the one that was replaced.
        ("RENAME TABLE a TO old, new TO a", (("db", "old"), A), (B,), True),
        ("RENAME TABLE a TO x, b TO a, x TO b", (B, A), (A, B), True),
        # Programs do this again and again, and it changes nothing.
        ("CREATE TABLE IF NOT EXISTS a (x INT)", (A,), (B,), False),
        # The rows of a part that is not copied are then in the other table.
        ("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE c", (A, C), (B,), True),
        ("ALTER TABLE c EXCHANGE PARTITION p WITH TABLE b", (A,), (B, C), False),
    ],
)
def test_statements(statement: str, fresh: tuple[Table, ...], again: tuple[Table, ...], begins_anew: bool) -> None:
    pending = _after(_MIDDLE, statement)
    assert (pending.fresh, pending.again) == (fresh, again)
    assert (pending.after is None) == begins_anew
    assert pending.written == 4


def test_a_table_that_is_gone_is_left_out() -> None:
    assert _MIDDLE.without(B) == Pending(fresh=(A,), after=("1",), written=4, rows=9)
    assert _MIDDLE.without(A) == Pending(again=(B,), written=4)


def test_a_table_that_exists_is_not_created() -> None:
    _, effects = classify("CREATE TABLE a (x INT)", database="db", ansi_quotes=False, backslash_escapes=True)
    assert not _MIDDLE.is_changed_by(effects)
    assert Pending(fresh=(A,)).is_changed_by(effects)


def test_tables_that_the_filters_leave_out_are_not_copied() -> None:
    assert _MIDDLE.wanted(lambda _, name: name != "b") == Pending(fresh=(A,), after=("1",), written=4, rows=9)
    assert _MIDDLE.wanted(lambda _, name: name != "a") == Pending(again=(B,), written=4)
    assert _MIDDLE.wanted(lambda *_: True) == _MIDDLE


def test_tables_that_lack_rows_are_listed_until_their_copy_begins_or_is_given_up() -> None:
    pending = Pending(again=(A,), after=("1",)).lacking([A, B], "u:7").lacking([B, C], "u:8")
    assert pending.again == (A, A, B, C)
    assert [pending.lacks_rows(table, "u:8") for table in (A, B, C)] == [True, True, False]
    assert pending.lacks_rows(C, "u:9")
    assert Pending.from_json(json.loads(json.dumps(pending.to_json()))) == pending
    pending = pending.chunk_written(None, 1)
    assert pending.lacks_rows(A, "u:9")  # its second copy is still to begin
    pending = pending.chunk_written(("1",), 1)
    assert not pending.lacks_rows(A, "u:9")
    pending = pending.stopped([B], requests=1).asked([B], requests=2)
    assert not pending.lacks_rows(B, "u:9")
    assert not _after(pending, "RENAME TABLE c TO d").lacks_rows(C, "u:9")


def test_the_state_of_an_older_version_has_no_topic_id() -> None:
    body = _MIDDLE.to_json() or {}
    assert body.keys() == {"structure", "fresh", "again", "after", "written", "rows", "requests"}
    assert Pending.from_json(body) == _MIDDLE


def test_a_request_takes_back_what_is_copied_again_only() -> None:
    pending = Pending(fresh=(A,), again=(B, C), after=("1",), rows=9)
    assert pending.stopped([A, B], requests=3, topic="id") == Pending(
        fresh=(A,), again=(C,), after=("1",), rows=9, requests=3, requests_topic="id"
    )
    under_way = Pending(again=(B, C), after=("1",), rows=9).stopped([B, A], requests=3)
    assert under_way == Pending(again=(C,), requests=3)


@pytest.mark.parametrize(
    ("statement", "after"), [("RENAME TABLE a TO c", ()), ("ALTER TABLE a ADD x INT", ()), ("DROP TABLE a", None)]
)
def test_that_followers_have_removed_a_tables_rows_is_known_until_it_is_gone(
    statement: str, after: tuple[str, ...] | None
) -> None:
    assert _after(Pending(again=(A, B), after=(), rows=3), statement).after == after


def test_a_table_that_is_asked_for_amid_its_copy_is_copied_once_more() -> None:
    """What followers' rows in the part that is written already have become since is put right by that."""
    amid = Pending(again=(A, B), after=("1",), rows=9).asked([A, B, A], requests=3)
    assert amid == Pending(again=(A, B, A), after=("1",), rows=9, requests=3)
    assert amid.asked([A], requests=3) == amid
    assert _MIDDLE.asked([A], requests=3).tables == (A, B, A)
    assert Pending.from_json(json.loads(json.dumps(amid.to_json()))) == amid
    # By another table's statement it stays so, by one of its own its copy begins again, which is enough.
    assert _after(amid, "ALTER TABLE b ADD x INT") == amid
    assert _after(_MIDDLE.asked([A], requests=3), "RENAME TABLE b TO c").tables == (A, C, A)
    assert _after(amid, "TRUNCATE a") == Pending(again=(A, B), requests=3)
    assert amid.without(A) == Pending(again=(B,), requests=3)
    assert amid.stopped([A], requests=4) == Pending(again=(B,), requests=4)
    fresh = _MIDDLE.asked([A], requests=3)
    assert fresh.stopped([A], requests=4).tables == (A, B)
    # One of which followers have removed the rows ends, and is not begun again.
    emptied = Pending(again=(A,), after=()).asked([A], requests=3)
    assert emptied.stopped([A], requests=4) == Pending(again=(A,), after=(), requests=4)
    while amid.current == A:
        amid = amid.chunk_written(None, 1)
        assert (amid.after, amid.rows) == (None, 0)
    assert amid.chunk_written(None, 0).tables == (A,)


def test_a_statement_on_a_table_that_waits_leaves_the_others() -> None:
    """The copy of the first one continues."""
    pending = Pending(fresh=(A, B, C), again=(A, B), after=("1",), rows=9)
    renamed = ("db", "d")
    assert _after(pending, "RENAME TABLE c TO d") == replace(pending, fresh=(A, B, renamed))
    assert _after(pending, "RENAME TABLE b TO d") == replace(pending, fresh=(A, renamed, C), again=(A, renamed))
    assert _after(pending, "DROP TABLE b") == replace(pending, fresh=(A, C), again=(A,))
    pending = Pending(again=(A, B, C, A), after=("1",), rows=9)
    assert _after(pending, "DROP TABLE b") == replace(pending, again=(A, C, A))
    assert _after(pending, "RENAME TABLE c TO d") == replace(pending, again=(A, B, renamed, A))
