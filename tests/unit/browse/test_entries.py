"""Which keys, tables and rows of a record are found and shown, and messages as text, hex digits and JSON."""

from typing import Any

from cdc.browse.entries import keys_of, kind_of, objects_of
from cdc.browse.messages import Shown, as_hex, as_json, as_text
from cdc.browse.records import Decoded
from cdc.model.names import Uri
from cdc.model.position import Position
from cdc.model.record import KeyRange, Record, Row


def image(*numbers: int) -> list[Any]:
    return [{"SignedInteger": number} for number in numbers]


def record(*rows: Row, operation: str = "Update", key: tuple[str, ...] | None = ("b",), **more: Any) -> Record:
    return Record(
        Uri("r", "d", "t"), 1, Position("b.1", 4), "id", 0, True, 0, operation,
        columns=("a", "b"), key=key, rows=rows, **more,
    )  # fmt: skip


MOVED, KEPT = Row(image(1, 2), image(1, 3)), Row(image(4, 5), image(6, 5))


def test_an_update_has_the_keys_before_and_after_it() -> None:
    assert list(keys_of(record(MOVED, KEPT, MOVED))) == ["2", "3", "5"]
    assert list(keys_of(record(MOVED, key=("b", "a")))) == ["2, 1", "3, 1"]
    assert list(keys_of(record(Row(None, image(1, 2)), operation="Add"))) == ["2"]
    assert list(keys_of(record(MOVED, key=None))) == []


def test_a_repair_has_the_keys_without_a_row_too() -> None:
    repair = record(Row(None, image(1, 2)), operation="Copy", range=KeyRange(None, None, keys=(image(2), image(9))))
    assert (kind_of(repair), list(keys_of(repair))) == ("Repair", ["2", "9"])
    assert kind_of(record(operation="Copy", range=KeyRange(None, None))) == "Copy"


def test_a_statement_changes_what_it_affects() -> None:
    renamed: tuple[dict[str, Any], ...] = (
        {"action": "RenameTable", "uri": "flv://r/d/a", "to": "flv://r/e/a%2Fb"},
        {"action": "DropDatabase", "uri": "flv://r/f"},
    )
    assert objects_of(record(operation="Query", affects=renamed)) == [("d", "a"), ("e", "a/b"), ("f", "")]
    assert objects_of(record()) == [("d", "t")]


def test_rows_are_shown_with_their_keys_and_both_images() -> None:
    gone = Row(image(7, 8), None)
    decoded = Decoded(record(MOVED, gone, KEPT), b"", Shown("t", 0, 1, None, "create", None, None, (), 0))
    moved, deleted = decoded.rows(count=2)
    assert (moved.number, moved.key_before, moved.key_after) == (0, "2", "3")
    assert [(tuple(cell), cell.changed) for cell in moved.cells] == [(("a", "1", "1"), False), (("b", "2", "3"), True)]
    assert (deleted.key_before, deleted.key_after) == ("8", "8")
    assert [(cell.before, cell.after, cell.changed) for cell in deleted.cells] == [
        ("7", None, False),
        ("8", None, False),
    ]
    assert [each.number for each in decoded.rows(begin=1)] == [1, 2]


def test_bytes_are_shown_without_what_controls_a_terminal_or_a_page() -> None:
    assert as_text(b"a\xff\x1b\n\xe2\x80\xae") == "a\\xff␛\n\\u202e"
    assert (as_text(None), as_hex(None), as_text(b"")) == ("∅", "∅", "")
    assert as_hex(bytes(range(0x3E, 0x4F))) == (
        "00000000  3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d  >?@ABCDEFGHIJKLM\n"
        "00000010  4e                                               N"
    )
    assert as_json('{"a":[18446744073709551616,"\u202eé\x7f"]}'.encode()) == (
        '{\n  "a": [\n    18446744073709551616,\n    "\\u202eé\\u007f"\n  ]\n}'
    )
    assert [as_json(text) for text in (None, b"", b"a", b"\xff", b"[" * 100_000)] == [None] * 5
