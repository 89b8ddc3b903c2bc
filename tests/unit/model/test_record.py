"""URIs, records and character sets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.filters import Filters
from cdc.errors import PromiseError
from cdc.model.charset import latin1_decode, latin1_encode
from cdc.model.record import Record, Uri, position_in_head
from cdc.model.values import UNSEEN
from cdc.tail.lines import line

RECORD = (
    b'{"uri":"flv://r/d","sequence":0,"bn_file":{"fileName":"b.000001","offset":4},'
    b'"transaction":{"id":"t","index":0,"last":true,"ts_us":1},"columns":["a"],"operation":{%s}}'
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)


@given(names, names, st.none() | names)
def test_a_uri_survives_its_text(resource: str, database: str, table: str | None) -> None:
    uri = Uri(resource, database, table)
    assert Uri.parse(str(uri)) == uri


@given(st.binary())
def test_latin1_carries_every_byte_both_ways(data: bytes) -> None:
    assert latin1_encode(latin1_decode(data)) == data


def test_latin1_is_cp1252_with_c1_controls() -> None:
    assert latin1_decode(b"\x80\x81\xe9") == "€\x81é"


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[]", b'"Null"', b'{"operation":{"Upsert":{}}}', b"\xff", b'{"operation":{}}',
     RECORD % b'"Query":"DROP TABLE a","Bytes":"x"', RECORD % b'"Query":"DROP TABLE a","Bytes":"Q!Q=="',
     RECORD % b'"Query":"DROP TABLE a","Bytes":"QQ==","More":1',
     RECORD % b'"Add":{"rows":[]},"Bytes":"QQ=="'],
)  # fmt: skip
def test_what_is_not_a_record_stops_with_its_place(text: bytes) -> None:
    with pytest.raises(PromiseError, match=r"at topic t, offset 7"):
        Record.parse(text, where="topic t, offset 7")


def test_system_databases_never_pass_and_globs_do() -> None:
    assert not Filters().wants_database("mysql")
    assert Filters().wants_table("Db", "t")
    assert Filters(include_dbs=("app_*",)).wants_database("app_1")
    assert not Filters(include_dbs=("app_*",)).wants_database("APP_1")
    assert not Filters(exclude_tables=("db.tmp_*",)).wants_table("db", "tmp_a")
    assert Filters(include_tables=("db.t",)).wants_table("db", "t")
    assert not Filters(include_tables=("db.t",)).wants_table("db", "t2")


def test_a_record_as_text_does_not_steer_a_terminal() -> None:
    steering = "\x1b]0;title\x07\x9b2J\x7f\n\u202e"
    head = {"uri": str(Uri("srv", steering, steering)), "sequence": 0, "bn_file": {"fileName": "b.000001", "offset": 4}}
    head |= {"transaction": {"id": steering, "index": 0, "last": True, "ts_us": 1}}
    value = {"String": steering}
    bodies = [
        {"columns": [steering], "operation": {"Add": {"rows": [{"cols": [value]}]}}},
        {"columns": ["a"], "operation": {"Update": {"rows": [{"before_cols": ["Null"], "after_cols": [value]}]}}},
        {"operation": {"Query": f"CREATE TABLE {steering}"}, "affects": []},
    ]
    for body in bodies:
        shown = line(Record.parse(json.dumps(head | body).encode(), where=""))
        assert UNSEEN.search(shown) is None, shown
        assert "␛]0;title␇\\u009b2J␡" in shown


def test_a_statement_has_bytes_where_its_text_does_not_give_them() -> None:
    record = Record.parse(RECORD % b'"Query":"DROP TABLE \xd0\xb6","Bytes":"RFJPUCBUQUJMRSDm"', where="")
    assert (record.query, record.exact) == ("DROP TABLE ж", b"DROP TABLE \xe6")
    assert Record.parse(RECORD % b'"Query":"DROP TABLE a"', where="").exact is None


BASE64 = "QUJD" * 1_100_000


@pytest.mark.parametrize(
    "value",
    [{"Blob": BASE64}, {"Json": {"Blob": BASE64}}, {"Json": [{"Blob": BASE64}, {"Blob": "#0"}]},
     {"String": json.dumps({"Blob": BASE64})}, {"String": "#0" + BASE64}, {"Blob": "=Q" + BASE64}],
    ids=["blob", "document", "both", "string", "text", "no base64"],
)  # fmt: skip
def test_a_large_record_is_read_as_any_other(value: object) -> None:
    text = json.dumps(value, separators=(",", ":"))
    before, after = f'"before_cols":[{text}]', f'"after_cols":[{text.replace("QUJD", "QUJE", 1)}]'
    rows = f'"Update":{{"rows":[{{{before},{after}}}]}}'
    (row,) = Record.parse(RECORD % rows.encode(), where="").rows
    assert [row.before, row.after] == [[value], [json.loads(text.replace("QUJD", "QUJE", 1))]]


def test_the_position_of_a_record_is_in_its_first_bytes() -> None:
    body = {
        "uri": "flv://srv1/d/t", "sequence": 7, "bn_file": {"fileName": "a:\"b\".000001", "offset": 4_294_967_296},
        "transaction": {"id": "t", "index": 0, "last": True, "ts_us": 0}, "operation": {"Query": "x" * 5000},
    }  # fmt: skip
    text = json.dumps(body, separators=(",", ":")).encode()
    assert position_in_head(text[:1000], where="t/0/1") == Record.parse(text, where="").position
    with pytest.raises(PromiseError, match="at t/0/1"):
        position_in_head(text[:40], where="t/0/1")
