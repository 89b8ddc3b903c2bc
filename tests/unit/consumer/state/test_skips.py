"""What an operator may skip: a sequence that is due and refused, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from cdc.config.renames import Renames, folded_renames
from cdc.consumer.state.skips import Skips
from cdc.errors import UserError
from cdc.model.position import Position
from cdc.model.record import KeyRange, Record, Uri


def test_what_has_been_applied_is_refused() -> None:
    with pytest.raises(UserError, match="record 5 has been applied or skipped already: the follower is at sequence 7"):
        Skips([9, 5]).check_start(7, following=20)


def test_what_is_not_out_is_refused() -> None:
    with pytest.raises(UserError, match="there is no record 20 in the topic: the next one will be 20"):
        Skips([20]).check_start(7, following=20)
    Skips([20]).check_start(7, following=None)


def test_what_was_taken_is_told_once_it_is_applied() -> None:
    skips = Skips([9, 12])
    skips.used.add(9)
    skips.check_applied(11)
    with pytest.raises(UserError, match="the follower has applied record 12"):
        skips.check_applied(12)


def test_what_never_came_is_told_at_the_end() -> None:
    skips = Skips([9])
    skips.used.add(9)
    skips.check_end(9)
    with pytest.raises(UserError, match="there is no record 9 in the topic: the last is 8"):
        skips.check_end(8)


def test_without_any_nothing_is_checked() -> None:
    skips = Skips()
    assert not skips
    skips.check_start(7, following=0)
    skips.check_applied(7)
    skips.check_end(7)


def record(database: str, table: str, **more: Any) -> Record:
    position = Position("binlog.000001", 4)
    return Record(Uri("r", database, table), 7, position, "gtid:1", 0, True, 0, "Add", **more)


def statement(*tables: str) -> Record:
    affects = tuple({"action": "AlterTable", "uri": f"flv://r/shop/{table}"} for table in tables)
    return replace(record("shop", "t"), operation="Query", uri=Uri("r", "shop"), affects=affects)


def test_a_table_is_left_in_any_spelling_where_the_follower_folds_names() -> None:
    renames = {"Shop": "Here"}
    for option in ("Shop.T", "shop.t", "SHOP.t"):
        skips = Skips.parse([option], new=Renames(renames).new)
        skips.fold(new=Renames(folded_renames(renames), folds=True).new)
        assert skips.allow(record("here", "t"))
        assert skips.allow(statement("t"))
        assert not skips.allow(record("shop", "t"))


def test_a_table_is_left_until_its_copy_begins() -> None:
    skips = Skips.parse(["9", "shop.t"], new={"shop": "here"}.__getitem__)
    assert skips
    assert skips.allow(record("here", "t"))
    assert not skips.allow(record("here", "other"))
    assert not skips.allow(record("shop", "t"))
    # Statements have the leader's names; those of several tables only where all are left.
    assert skips.allow(statement("t"))
    assert not skips.allow(statement("t", "other"))
    # What belongs to a copy makes the table right.
    assert not skips.allow(record("here", "t", copying=True))
    chunk = record("here", "t", range=KeyRange(None, None), key=("id",))
    assert not skips.allow(chunk)
    skips.see(replace(chunk, range=KeyRange(None, None, keys=([{"SignedInteger": 1}],))))
    assert skips.allow(record("here", "t"))
    assert skips.again(3) == ([], ["shop.t"])
    # Not the first chunk, where a run begins amid the copy.
    skips.see(replace(chunk, range=KeyRange([{"SignedInteger": 1}], None)))
    skips.see(replace(chunk, sequence=8))
    assert not skips.allow(record("here", "t"))
    assert not skips.allow(statement("t"))
    # The chunk is planned, and records before it are executed after that.
    assert skips.allow(replace(record("here", "t"), sequence=6))
    assert skips.allow(replace(statement("t"), sequence=6))
    assert skips.again(6) == ([], ["shop.t"])
    assert skips.again(7) == ([], [])


def test_names_with_dots_are_in_backquotes() -> None:
    skips = Skips.parse(["`my.shop`.`t.1`"], new=str)
    assert skips.allow(record("my.shop", "t.1"))
    assert skips.again(3) == ([], ["`my.shop`.`t.1`"])


@pytest.mark.parametrize("option", ["shop", ".t", "shop.", "-3", "", "my.shop.t"])
def test_what_is_neither_is_refused(option: str) -> None:
    with pytest.raises(UserError, match="is neither a record's sequence nor a table"):
        Skips.parse([option], new=str)
