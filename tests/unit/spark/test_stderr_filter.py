"""Which lines of Spark's standard error cdc-audit passes on, in whatever chunks they come."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cdc.spark.job.output import after_ivy, without_banners

BANNER = b'Setting default log level to "WARN".\n'
WRITTEN = BANNER + b"Setting up\n" + BANNER + b"\r[Stage 1:> (0 + 2) / 4]\rlost executor 1\n" + BANNER + b"Setting"
IVY = b":: retrieving ::\n\t0 artifacts copied, 11 already retrieved (0kB/9ms)\n"


def pieces(text: bytes, cuts: set[int]) -> Iterator[bytes]:
    ends = sorted({0, *cuts, len(text)})
    yield from (text[begin:end] for begin, end in pairwise(ends))


@given(cuts=st.sets(st.integers(0, len(WRITTEN))))
def test_banners_are_removed_and_all_else_is_passed_on(cuts: set[int]) -> None:
    assert b"".join(without_banners(pieces(WRITTEN, cuts))) == WRITTEN.replace(BANNER, b"")


@given(cuts=st.sets(st.integers(0, len(IVY + WRITTEN))))
def test_ivys_report_is_removed_if_it_ends(cuts: set[int]) -> None:
    assert b"".join(after_ivy(pieces(IVY + WRITTEN, cuts))) == WRITTEN
    assert b"".join(after_ivy(pieces(WRITTEN, cuts & set(range(len(WRITTEN)))))) == WRITTEN


def test_the_start_of_another_line_is_passed_on_at_once() -> None:
    passed = without_banners(iter([b"[Stage 1:", BANNER[:7], b"tle"]))
    assert list(passed) == [b"[Stage 1:", b"Settingtle"]
