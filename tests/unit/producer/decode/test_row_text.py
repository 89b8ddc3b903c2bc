"""The text of rows: JSON in UTF-8, which is never decoded on its way, and yet known to be UTF-8."""

from base64 import b64encode
from json.encoder import encode_basestring

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc.model.charset import latin1_decode
from cdc.producer import large_rows
from cdc.producer.binlog import event_types as et
from cdc.producer.decode.changes import RowDecoder
from cdc.producer.decode.row_codegen import row_decoder, row_decoders
from cdc.producer.decode.table_map import ENUM, JSON, SET, Column, Table, column_type
from cdc.producer.large_rows import require_utf8
from cdc.producer.sink.router import content_sum, row_sum

# Pieces of text, repeated to any length around the limits at which a text counts as long.
PIECES = st.sampled_from(["a", "é", "ž", "€", "😀", '"', "\\", "\n", "\r", "\t", "\b", "\f", "\0", "\x1f", "\x7f"])
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from([1, 2, 49, 99, 100, 101, 1500])), max_size=5).map(
    lambda parts: "".join(piece * times for piece, times in parts)
)


def decoders(column: Column) -> list[RowDecoder]:
    """That of a table's first rows, and the one that is compiled."""
    table = Table("db", "t", (column,), None)
    first = row_decoders(table, compile_for=pytest.fail)[et.WRITE_ROWS]
    return [first, row_decoder(table, et.WRITE_ROWS, allow_differences=pytest.fail)]


def stored(prefix: int, text: bytes) -> bytes:
    return b"\0" + len(text).to_bytes(prefix, "little") + text


def row_of(text: str) -> bytes:
    return f'{{"cols":[{{"String":{encode_basestring(text)}}}]}}'.encode()


@given(TEXTS)
def test_text_in_utf8_is_what_the_json_encoder_makes_of_it(text: str) -> None:
    for column, prefix in ((Column("", 252, 4, charset="utf8mb4"), 4), (Column("", 15, 400, charset="utf8mb3"), 2)):
        for decode in decoders(column):
            assert decode(stored(prefix, text.encode()), 0) == [row_of(text)]
    if len(text.encode()) < 256:
        for decode in decoders(Column("", 15, 255, charset="utf8mb4")):
            assert decode(stored(1, text.encode()), 0) == [row_of(text)]


@given(st.binary(max_size=300))
def test_text_in_latin1_becomes_utf8(data: bytes) -> None:
    for decode in decoders(Column("", 252, 2, charset="latin1")):
        assert decode(stored(2, data), 0) == [row_of(latin1_decode(data))]


@given(st.binary(max_size=300))
@example(b"plain")
def test_bytes_above_127_in_ascii_stay_bytes(data: bytes) -> None:
    """Servers of former versions stored them."""
    bytes_of_it = b64encode(data).decode()
    told = row_of(data.decode()) if data.isascii() else (
        f'{{"cols":[{{"Text":{{"charset":"ascii","base64":"{bytes_of_it}"}}}}]}}'.encode()
    )  # fmt: skip
    for column, prefix in ((Column("", 252, 2, charset="ascii"), 2), (Column("", 15, 300, charset="ascii"), 2)):
        for decode in decoders(column):
            assert decode(stored(prefix, data), 0) == [told]


@pytest.mark.parametrize("kind", [ENUM, SET])
@pytest.mark.parametrize("charset", ["ascii", "utf8mb4", "utf8mb3"])
def test_members_with_bytes_that_are_no_text_are_told_by_their_number(kind: int, charset: str) -> None:
    column = Column("", kind, 1, charset=charset, members=(b"a", b"\xef"))
    assert column_type(column) == f"{'enum' if kind == ENUM else 'set'} character set {charset}"
    for decode in decoders(column):
        assert decode(b"\0\1", 0) == [f'{{"cols":[{{"{"Enum" if kind == ENUM else "Set"}":1}}]}}'.encode()]


@given(st.binary(max_size=8), st.sampled_from([0, 200]), st.binary(max_size=8))
@example(b"\xc3", 0, b"")  # the first byte of a character, before the quote that ends the text
@example(b"", 200, b"\xa9")  # a later one
@example(b"\xed\xa0\x80", 0, b"")  # half a pair of UTF-16
def test_bytes_that_are_no_utf8_are_refused(before: bytes, ascii_bytes: int, after: bytes) -> None:
    data = before + b"a" * ascii_bytes + after
    for decode in decoders(Column("", 252, 2, charset="utf8mb4")):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            with pytest.raises(UnicodeDecodeError):
                decode(stored(2, data), 0)
        else:
            assert decode(stored(2, data), 0) == [row_of(text)]


@given(st.one_of(st.binary(max_size=12), TEXTS.map(lambda text: text[:20].encode())), st.integers(1, 5))
@example(b"aaaa\xe2\x82", 2)  # ends in the midst of a character
def test_a_large_row_is_checked_part_by_part(data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(large_rows, "_SLICE", size)
        try:
            data.decode()
        except UnicodeDecodeError:
            with pytest.raises(UnicodeDecodeError):
                require_utf8(data)
        else:
            require_utf8(data)


def test_members_and_documents_are_in_utf8() -> None:
    members = ("ž".encode(), "😀".encode())
    document = b"\x0c\x02" + "ž".encode()
    for column, value, text in (
        (Column("", ENUM, 1, charset="utf8mb4", members=members), b"\2", '{"Enum":"😀"}'),
        (Column("", SET, 1, charset="utf8mb4", members=members), b"\3", '{"Set":["ž","😀"]}'),
        (Column("", ENUM, 1, charset="latin1", members=(b"\xe9",)), b"\1", '{"Enum":"é"}'),
        (Column("", JSON, 4), len(document).to_bytes(4, "little") + document, '{"Json":"ž"}'),
    ):
        for decode in decoders(column):
            assert decode(b"\0" + value, 0) == [f'{{"cols":[{text}]}}'.encode()]


@given(TEXTS)
def test_the_checksum_of_a_row_is_that_of_its_text(text: str) -> None:
    assert row_sum("flv://r/d/t", text.encode()) == content_sum("flv://r/d/t", text)
