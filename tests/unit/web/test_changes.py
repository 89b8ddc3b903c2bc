"""The values of a row side by side, and messages as texts."""

import json

import pytest

from cdc.browse.messages import Shown
from cdc.browse.records import Decoded
from cdc.model.record import Record
from cdc.web.record_pages import ShownRow, Side, row_places, shown_row
from cdc.web.topic_pages import shown_message

LONG = "x" * 1_000_000


def message(value: bytes | None, *, size: int | None = None, key: bytes | None = b"k") -> Shown:
    headers = (("h", b"\x00\xff"), ("none", None))
    return Shown("t", 0, 5, None, "create", key, value, headers, len(value or b"") if size is None else size)


def decoded(operation: str, rows: object, columns: list[str]) -> Decoded:
    body = {
        "uri": "flv://srv/db/t", "sequence": 1, "bn_file": {"fileName": "b.1", "offset": 4},
        "transaction": {"id": "u:1", "index": 0, "last": True, "ts_us": 0}, "columns": columns, "key": columns[:1],
        "operation": {operation: {"rows": rows}},
    }  # fmt: skip
    text = json.dumps(body).encode()
    return Decoded(Record.parse(text, where="here"), text, message(text))


def update(before: list[object], after: list[object], columns: list[str]) -> ShownRow:
    record = decoded("Update", [{"before_cols": before, "after_cols": after}], columns)
    [row] = record.rows()
    return shown_row(row, record.record)


def text(value: object) -> object:
    return {"String": value}


def test_what_differs_is_marked() -> None:
    row = update(
        [text("a"), text("at the door"), "Null"], [text("a"), text("at the back door"), "Null"], ["id", "note", "x"]
    )
    assert (row.key, row.key_before, row.changed) == ("'a'", "'a'", 1)
    key, note, null = row.cells
    assert key.is_key and not key.changed
    assert (note.before, note.after) == (Side("'at the ", "", "door'"), Side("'at the ", "back ", "door'"))
    assert null.after == Side("NULL")


def test_a_value_of_a_megabyte_is_short() -> None:
    row = update(
        [text("a"), text(LONG), text(LONG)], [text("a"), text(LONG), text("y" + LONG)], ["id", "same", "other"]
    )
    _, same, other = row.cells
    assert same.before and same.before.length == 1_000_002 and len(same.before.before) < 2_100
    assert other.after and other.after.length == 1_000_003 and other.after.middle == "y"
    assert len(repr(row)) < 6_000


def test_a_timestamp_is_a_time() -> None:
    then, zero = ({"Timestamp": {"unix_time": at, "subsecond": 5000}} for at in (1_795_752_662, 0))
    row = update([text("a"), then, zero], [text("a"), then, zero], ["id", "at", "zero"])
    assert row.cells[1].before == Side("2026-11-27 04:11:02.005000 UTC")
    assert row.cells[2].before and "1970" not in row.cells[2].before.before


def test_the_rows_of_a_key() -> None:
    many = decoded("Add", [{"cols": [text(str(number % 2_000))]} for number in range(4_000)], ["id"])
    assert [row.number for row in row_places(many, key="'1999'", begin=0)] == [1999, 3999]
    assert [row.number for row in row_places(many, key="", begin=3990)] == list(range(3990, 4000))
    assert list(row_places(many, key="'none'", begin=0)) == []


@pytest.mark.parametrize(
    ("value", "form", "shown", "found"),
    [
        (b'{"a":1}', "auto", '{\n  "a": 1\n}', "json"),
        (b'{"a":1}', "text", '{"a":1}', "text"),
        (b'{"a":1}', "hex", "00000000  7b 22 61 22 3a 31 7d", "hex"),
        (b"plain", "json", "plain", "text"),
        ("Grüße 李".encode(), "auto", "Grüße 李", "text"),
        (b"\x00\x01bin", "auto", "00000000  00 01 62 69 6e", "hex"),
        (b"\xff", "auto", "00000000  ff", "hex"),
        (b"\xff", "text", "\\xff", "text"),
        (b"", "auto", "", "text"),
        (None, "auto", "∅", "text"),
    ],
)  # fmt: skip
def test_a_message(value: bytes | None, form: str, shown: str, found: str) -> None:
    made = shown_message(message(value), form=form)
    assert made.value.startswith(shown) and made.form == found and made.cut == 0
    assert made.headers == (("h", "00 ff"), ("none", "∅")) and made.key == "k"


def test_json_in_a_list_is_as_it_was_written() -> None:
    assert shown_message(message(b'{"a":1}'), form="auto", in_list=True).value == '{"a":1}'
    assert shown_message(message(b'{"a":1}'), form="json", in_list=True).value == '{\n  "a": 1\n}'


def test_the_beginning_of_a_message_is_no_json() -> None:
    """A beginning may end within a character, and is text nevertheless."""
    made = shown_message(message("[1, 2] ü".encode()[:-1], size=1000), form="auto")
    assert (made.form, made.cut) == ("text", 992)


def test_json_whose_indents_would_be_most_of_it_stays_as_it_is() -> None:
    levels, numbers = 900, 10_000
    value = b"[" * levels + b"0," * numbers + b"0" + b"]" * levels
    shown = shown_message(message(value), form="json")
    assert (shown.form, shown.value) == ("text", value.decode())
    flat = b"[" + value[levels:-levels] + b"]"
    assert shown_message(message(flat), form="json").form == "json"
