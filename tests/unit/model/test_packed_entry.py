"""The distances as which a packed entry has the numbers of a GTID set."""

from hypothesis import given
from hypothesis import strategies as st

from cdc.model.commit_entry import distances, numbers
from cdc.model.gtid import GtidSet

A = "11111111-1111-1111-1111-111111111111"
B = "22222222-2222-2222-2222-222222222222"

gtids = st.lists(st.tuples(st.sampled_from([A, B, f"{A}:b1", f"{B}:_"]), st.integers(1, (1 << 63) - 2)))
near = st.lists(st.tuples(st.sampled_from([A, B, f"{A}:b1", f"{B}:_"]), st.integers(1, 60)), max_size=80)


@given(gtids | near)
def test_distances_tell_the_numbers(added: list[tuple[str, int]]) -> None:
    result = GtidSet()
    for source, number in added:
        result.add(f"{source}:{number}")
    assert numbers(distances(str(result))) == str(result)


def test_distances() -> None:
    text = f"{A}:5-7:12:14-15,{B}:b1:3"
    assert distances(text) == f"{A}:5+2:5:2+1,{B}:b1:3"
    assert numbers(distances("")) == ""
