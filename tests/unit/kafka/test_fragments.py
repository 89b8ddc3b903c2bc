"""A record in fragments is put together as it was, or not at all; from the middle of one, reading begins behind it."""

import re
import tempfile
from zlib import crc32

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import PromiseError, UserError
from cdc.kafka.fragments import FRAGMENT_HEADER, Fragments, cut, cut_blocks, first_whole_sequence
from cdc.large_rows import LargeRecord

RECORD = '{"uri":"flv://r/d/a","sequence":%d,"t":"%s"}'


def message(offset: int, value: bytes, mark: bytes | None = None, *, partition: int = 0) -> Message:
    headers = [("mysql_binlog_headers", b"{}"), *([(FRAGMENT_HEADER, mark)] if mark is not None else [])]
    return Message(topic="t", partition=partition, offset=offset, value=value, headers=headers)


def written(texts: list[str], size: int, *, partition: int = 0) -> list[Message]:
    """The messages of records with those texts; those above ``size`` bytes as fragments."""
    found: list[Message] = []
    for sequence, text in enumerate(texts):
        value = (RECORD % (sequence, text)).encode()
        if len(value) <= size:
            found.append(message(len(found), value, partition=partition))
        else:
            for mark, fragment in cut(value, size, sequence=sequence):
                found.append(message(len(found), fragment, mark, partition=partition))
    return found


def values(messages: list[Message]) -> list[bytes]:
    return [each.value() or b"" for each in messages]


TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=60), max_size=8)


@given(st.text(), st.integers(4, 50))
def test_fragments_are_text_of_limited_size(text: str, size: int) -> None:
    fragments = [fragment for _, fragment in cut(text.encode("utf-8", "surrogatepass"), size, sequence=0)]
    assert b"".join(fragments) == text.encode("utf-8", "surrogatepass")
    assert max(map(len, fragments)) <= size
    assert all(fragment.decode("utf-8", "surrogatepass") is not None for fragment in fragments)


@given(st.lists(st.text(max_size=9)), st.integers(4, 12), st.integers(1, 9))
def test_a_record_in_blocks_is_cut_as_one_in_memory(texts: list[str], size: int, length: int) -> None:
    value = "".join(texts).encode("utf-8", "surrogatepass")
    blocks = [value[at : at + length] for at in range(0, len(value), length)]
    assert list(cut_blocks(lambda: blocks, size, sequence=7)) == list(cut(value, size, sequence=7))


@given(TEXTS, st.integers(4, 200), st.data())
def test_records_are_put_together_from_wherever_reading_begins(
    texts: list[str], size: int, data: st.DataObject
) -> None:
    messages = written(texts, size)
    begin = data.draw(st.integers(0, len(messages)))
    whole = [(RECORD % (sequence, text)).encode() for sequence, text in enumerate(texts)]
    first = (
        first_whole_sequence(messages[begin])
        if begin < len(messages) and FRAGMENT_HEADER in marks(messages[begin])
        else None
    )
    fragments = Fragments()
    # However many arrive at once.
    cuts = sorted(data.draw(st.lists(st.integers(begin, len(messages)), max_size=3)))
    found: list[Message] = []
    for start, end in zip([begin, *cuts], [*cuts, len(messages)], strict=True):
        found += fragments.all_whole(messages[start:end])
    rest = whole[len(whole) - len(found) :]
    assert values(found) == rest
    if first is not None:
        assert len(whole) - len(found) == first
    if found:
        assert found[-1].offset() == len(messages) - 1


def marks(each: Message) -> dict[str, bytes]:
    return dict(each.headers() or ())  # type: ignore[arg-type]


def test_partitions_are_kept_apart_and_errors_passed_on() -> None:
    fragments = Fragments()
    here, there = written(["x" * 100], 30), written(["y" * 100], 30, partition=1)
    end = Message(topic="t", partition=0, offset=9, error=KafkaError(KafkaError._PARTITION_EOF))
    mixed = [each for pair in zip(here, there, strict=True) for each in (*pair, end)]
    found = fragments.all_whole(mixed)
    whole = [each for each in found if each.error() is None]
    assert [text.count(letter) for text, letter in zip(values(whole), (b"x", b"y"), strict=True)] == [100, 100]
    assert len(found) - len(whole) == len(here)


@given(TEXTS.filter(bool), st.integers(4, 40), st.data())
def test_what_is_missing_is_never_passed_over(texts: list[str], size: int, data: st.DataObject) -> None:
    """Any fragment but the first that is read, and not at the end: there, the rest may still come."""
    messages = written(["", *texts, "the end"], size)
    gone = data.draw(st.integers(1, len(messages) - 1))
    left = [*messages[:gone], *messages[gone + 1 :]]
    fragments = Fragments()
    good: list[Message] = []
    with pytest.raises(PromiseError, match="not complete"):
        for _ in range(2):
            good += fragments.all_whole(left)
            if gone == len(messages) - 1:
                fragments.all_whole([message(99, b"{}")])
    whole = [(RECORD % (sequence, text)).encode() for sequence, text in enumerate(["", *texts])]
    assert values(good) == whole[: len(good)]
    # What came before is told once, then the error again and again.
    with pytest.raises(PromiseError, match="not complete"):
        fragments.all_whole([])


def test_after_another_offset_reading_begins_anew() -> None:
    fragments, messages = Fragments(), written(["x" * 100], 30)
    assert fragments.all_whole(messages[:2]) == []
    fragments.forget([("t", 0)])
    assert fragments.all_whole(messages[2:]) == []
    fragments.forget([("t", 0)])
    assert len(fragments.all_whole(messages)) == 1


@pytest.mark.parametrize("mark", [b"", b"1 2 3", b"a b c d", b"1 2 3 4 5"])
def test_a_header_of_something_else(mark: bytes) -> None:
    with pytest.raises(PromiseError, match=re.escape(f"header {FRAGMENT_HEADER} is {mark!r}")):
        Fragments().whole(message(0, b"{}", mark))


def test_other_bytes_than_were_written() -> None:
    first, second = b"0 0 2 %d" % crc32(b"ab"), b"0 1 2 %d" % crc32(b"ab")
    fragments = Fragments()
    fragments.whole(message(0, b"a", first))
    with pytest.raises(PromiseError, match="not what was written"):
        fragments.whole(message(1, b"x", second))


def test_a_disk_that_is_full_is_told_again_until_it_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing after it is given, as if it were complete."""
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/nowhere")
    small = message(0, (RECORD % (0, "x")).encode())
    value = b'{"Blob":"' + b"AAAA" * 400_000 + b'"}'
    large = [message(1 + at, part, mark) for at, (mark, part) in enumerate(cut(value, 300_000, sequence=1))]
    fragments = Fragments(on_disk=True)
    assert values(fragments.all_whole([small, *large])) == values([small])
    for _ in range(2):
        with pytest.raises(UserError, match="can't be written to disk"):
            fragments.all_whole([message(9, (RECORD % (2, "y")).encode())])
    monkeypatch.undo()
    fragments.forget([(large[0].topic() or "", 0)])
    (whole,) = fragments.all_whole(large)
    record = whole.value()
    assert isinstance(record, LargeRecord)
    assert record.whole() == value
