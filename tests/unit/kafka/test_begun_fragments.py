"""What completes a record of which readers see the first fragments."""

import pytest

from cdc.errors import PromiseError
from cdc.kafka.fragments import Begun, Fragment, cut, rest

VALUE = "".join(f"{number} ä…" for number in range(60)).encode()
SIZE = 100


def fragments(size: int) -> list[tuple[bytes, bytes]]:
    return list(cut(VALUE, size, sequence=7))


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("size", range(SIZE - 12, SIZE + 12))
def test_the_record_is_whole_afterwards_or_refused(number: int, size: int) -> None:
    seen = fragments(SIZE)[: number + 1]
    begun = Begun(Fragment(*map(int, seen[-1][0].split())), seen[-1][1])
    try:
        all_of_it = [*seen, *rest(fragments(size), begun, where="here")]
    except PromiseError:
        assert size != SIZE
    else:
        assert b"".join(part for _, part in all_of_it) == VALUE
