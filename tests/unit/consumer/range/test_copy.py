"""consumer.start: which copy goes with which topic, and what is passed over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.range.base_copy import check_topic, with_gtids
from cdc.consumer.source.assembler import assemble
from cdc.consumer.state.base_copy import BaseCopy
from cdc.errors import Disconnected, UserError
from cdc.model.commit_entry import Commits
from cdc.model.gtid import GtidSet
from tests.unit.consumer.source.test_assembler import SIZES, history, located

A, B = (f"{digit}a11fa47-71ca-11e1-9e33-c80aa9429562" for digit in "12")


def entry(gtids: str, *, sequence: int = 0, origin: str | None = None) -> Commits:
    return Commits(sequence, (), gtid_set=gtids, origin=origin)


def refusal(held: str, newest: Commits | None, oldest: Commits | None = None) -> str:
    try:
        check_topic(GtidSet.parse(held), newest=newest, oldest=lambda: oldest)
    except UserError as error:
        return error.what
    return ""


def test_a_topic_that_tells_what_came_before_its_first_record() -> None:
    newest = entry(f"{A}:1-90,{B}:1-5", sequence=70, origin=f"{A}:1-20,{B}:1-5")
    assert refusal(f"{A}:1-20,{B}:1-5", newest) == ""
    assert refusal(f"{A}:1-2000,{B}:1-7", newest) == ""  # the topic does not reach as far as the copy
    assert refusal(f"{A}:1-19:21-90", newest).endswith(f" that the copy lacks: {A}:20,{B}:1-5")
    assert refusal(f"{A}:1", entry("", origin="")) == ""


def test_a_log_of_an_earlier_version_is_known_by_its_oldest_entry() -> None:
    newest, oldest = entry(f"{A}:1-90", sequence=70), entry(f"{A}:1-50", sequence=30)
    assert refusal(f"{A}:1-60", newest, oldest) == ""
    assert f"lacks, some of {A}:41-50: an earlier version of cdc" in refusal(f"{A}:1-40", newest, oldest)
    assert f"lacks, some of {A}:41-90: an earlier version of cdc" in refusal(f"{A}:1-40", newest)
    assert "the leader has no GTIDs" in refusal(f"{A}:1-40", entry("", sequence=3), entry("", sequence=1))
    with pytest.raises(Disconnected, match="has no entry yet"):
        refusal(f"{A}:1", None)


@given(SIZES, st.sets(st.integers(0, 12)), st.integers(1, 9))
def test_whole_transactions_are_passed_over(sizes: list[int], held: set[int], size: int) -> None:
    records, names = history(sizes), {}
    for item in records:
        item.transaction = names.setdefault(item.transaction, f"{A}:{len(names) + 1}")
    copied = BaseCopy(GtidSet.parse(",".join(f"{A}:{number + 1}" for number in held)))
    items = [each and each._replace(size=3) for each in located(records)]
    passed = [
        item.sequence
        for transaction in with_gtids(assemble(items, resource="srv", next_sequence=0, size=size), copied)
        if transaction is not None
        for item in transaction.records
        if copied.has(item)
    ]
    begins = [sum(sizes[:number]) for number in range(len(sizes))]
    assert passed == [n for at, first in enumerate(begins) if at in held for n in range(first, first + sizes[at])]


def test_a_transaction_without_a_gtid() -> None:
    records = history([1, 1])
    records[0].transaction, records[1].transaction = f"{A}:7", "binlog.000003:1000"
    items = assemble(located(records), resource="srv", next_sequence=0)
    found = with_gtids(items, BaseCopy(GtidSet.parse(f"{A}:1-5")))
    assert next(found) is not None
    with pytest.raises(UserError, match=r"binlog\.000003:1000 has no GTID"):
        next(found)
    assert len(list(with_gtids(iter([]), BaseCopy()))) == 0


def test_a_copy_of_mariadb_has_all_of_a_domain_up_to_its_last_gtid() -> None:
    """Whichever server logged them: a position names the last one only."""
    copied = BaseCopy(GtidSet.parse("0-7:1-9"))
    assert [copied.has_gtid(gtid) for gtid in ("0-7-9", "0-1-3", "0-7-10", "0-1-10", "3-7-1", f"{A}:3")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
