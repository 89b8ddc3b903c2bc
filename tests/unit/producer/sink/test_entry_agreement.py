"""An entry of the commit log that contradicts the records next to its place is not taken for theirs."""

from dataclasses import replace

import pytest

from cdc.model.commit_entry import Entry, Partial
from cdc.model.position import Position
from cdc.producer.sink.entry_agreement import Neighbour, agrees

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ENTRY = Entry(6, Position("binlog.000002", 500), f"{UUID}:1-5", UUID, copy={"written": 2})


def by_gtid(number: int) -> Neighbour:
    # Its place says nothing: another server may be the leader since.
    return Neighbour(f"{UUID}:{number}", (9, 9))


def by_place(file: int, offset: int) -> Neighbour:
    return Neighbour(f"binlog.{file:06}:{offset}", (file, offset))


@pytest.mark.parametrize(("last", "following", "is_about"), [
    (by_gtid(5), by_gtid(6), True), (by_gtid(5), None, True), (None, None, True), (None, by_gtid(6), True),
    (by_gtid(6), None, False), (by_gtid(5), by_gtid(5), False), (None, by_gtid(4), False),
    (by_place(2, 400), by_place(2, 500), True), (by_place(1, 900), by_place(3, 4), True),
    (by_place(2, 500), None, False), (by_place(2, 400), by_place(2, 499), False), (by_place(3, 4), None, False),
    (None, Neighbour("binlog.000002:500", (2, 300)), True), (Neighbour("binlog.000002:450", (2, 300)), None, True),
    (Neighbour("copy:1", (2, 500)), Neighbour("copy:2", (2, 400)), True),
])  # fmt: skip
def test_what_was_read_is_before_it_and_nothing_else(
    last: Neighbour | None, following: Neighbour | None, is_about: bool
) -> None:
    assert agrees(ENTRY, last, following, copied=2) == is_about
    assert not agrees(ENTRY, last, following, copied=1)
    assert agrees(ENTRY, last, following, copied=None) == is_about


def test_a_part_of_a_transaction_ends_within_it() -> None:
    entry = replace(ENTRY, partial=Partial(f"{UUID}:6", 3, 3))
    assert agrees(entry, by_gtid(6), by_gtid(6), copied=2)
    assert not agrees(entry, by_gtid(5), None, copied=2)


def test_a_record_is_read_from_the_beginning_of_its_text() -> None:
    head = (
        f'{{"uri":"flv://r/d/a","sequence":5,"bn_file":{{"fileName":"binlog.000002","offset":400}},'
        f'"transaction":{{"id":"{UUID}:5","index":0,"last":tr'
    )
    assert Neighbour.of(head.encode()) == Neighbour(f"{UUID}:5", (2, 400))
    assert Neighbour.of(b"") is None
