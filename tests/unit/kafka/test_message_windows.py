"""Messages are read backwards in windows that fit into memory."""

from hypothesis import given
from hypothesis import strategies as st

from cdc.kafka.partitions import last_fitting


@given(st.lists(st.integers(0, 12)), st.integers(1, 30))
def test_the_newest_that_fit_are_kept(sizes: list[int], limit: int) -> None:
    kept, is_cut = last_fitting(((7 + n, size) for n, size in enumerate(sizes)), limit, size=lambda size: size)
    assert [*kept] == list(enumerate(sizes, 7))[len(sizes) - len(kept) :]  # so what is left begins where these begin
    assert is_cut == (len(kept) < len(sizes))
    assert sum(size for _, size in kept) <= limit or len(kept) == 1
    if is_cut:
        assert sum(sizes[-len(kept) - 1 :]) > limit
