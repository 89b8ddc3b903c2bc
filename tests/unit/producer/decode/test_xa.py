"""XA transactions between their prepare and their end, with few rows and with more than are held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import PromiseError
from cdc.model.commit_entry import PreparedXa
from cdc.producer.binlog.events import RawEvent, serialized_integer
from cdc.producer.decode.decoder import XaTransactions, xid_of
from tests.generators.binlog_events import event, prepare_body

PLACE = PreparedXa(None, "binlog.000001", 4)


def prepare(gtrid: bytes, *, one_phase: int = 0) -> RawEvent:
    return event(38, prepare_body(gtrid, number=7, one_phase=one_phase))


def test_what_was_held_comes_back_under_its_own_xid() -> None:
    xa = XaTransactions({}, read_again=lambda place: pytest.fail("it was held"))
    for name in (b"\xff'", b"y"):
        xa.start(PLACE)
        xa.keep(event(30, name))
        assert xa.is_open
        xid, place, one_phase = xa.prepare(prepare(name))
        assert (place, one_phase, xa.is_open) == (PLACE, False, False)
        assert xid == xid_of(f"XA COMMIT X'{name.hex().upper()}',X'62',7")
    assert list(xa.committed("X'79',X'62',7", event(2, b""))) == [event(30, b"y")]
    xa.rolled_back("X'ff27',X'62',7")
    with pytest.raises(PromiseError, match="prepared before the producer's start"):
        xa.committed("X'ff27',X'62',7", event(2, b""))


def test_what_is_too_large_to_hold_is_read_again() -> None:
    again = [event(30, b"again")]
    xa = XaTransactions({}, read_again=lambda place: again if place == PLACE else pytest.fail("another place"))
    xa.start(PLACE)
    for _ in range(20):
        xa.keep(event(30, b"x" * 1_000_000))
    xid, _, _ = xa.prepare(prepare(b"large"))
    assert list(xa.committed(xid, event(2, b""))) == again
    # The room is free again: a small one is held.
    xa.start(PLACE)
    xa.keep(event(30, b"small"))
    xid, _, one_phase = xa.prepare(prepare(b"s", one_phase=1))
    assert one_phase
    assert list(xa.committed(xid, event(2, b""))) == [event(30, b"small")]


@pytest.mark.parametrize("text", ["XA COMMIT", "XA COMMIT 'a'", "XA COMMIT X'zz',X'',1"])
def test_a_statement_without_an_xid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="without an xid"):
        xid_of(text)


def serialized(value: int) -> bytes:
    """The shortest form of ``value`` (MySQL source, libs/mysql/serialization, variable-length integers)."""
    size = max(1, -(-value.bit_length() // 7))
    if size > 8:
        return b"\xff" + value.to_bytes(8, "little")
    return (value << size | (1 << size - 1) - 1).to_bytes(size, "little")


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_integers_of_the_serialization_library(value: int, rest: bytes) -> None:
    data = serialized(value)
    assert serialized_integer(data + rest, 0) == (value, len(data))
