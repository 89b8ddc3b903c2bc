"""Values in Debezium's messages, in each mode; Debezium's own are compared in integration/producer/test_debezium.py."""

import json
from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.debezium import Debezium
from cdc.model.values import NULL
from cdc.producer.debezium.values import converter
from cdc.sql.column_types import read_type

CONNECT = Debezium(time_precision_mode="connect")
DAY = {"year": 2024, "month": 2, "day": 29}
CLOCK = {"hour": 12, "minute": 34, "second": 56, "subsecond": 789_012}
NEGATIVE = {"negative": True, "hour": 0, "minute": 0, "second": 1, "subsecond": 5}


def converted(type_: str, value: Any, modes: Debezium | None = None, **details: Any) -> Any:
    return converter(read_type(type_), modes or Debezium(), **details)(value)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("int", NULL, None),
        ("int", {"SignedInteger": -1}, -1),
        ("bigint unsigned", {"UnsignedInteger": 2**64 - 1}, -1),
        ("int unsigned", {"UnsignedInteger": 2**32 - 1}, 2**32 - 1),
        ("decimal(10,2)", {"Decimal": "-1.50"}, "/2o="),
        ("bit(1)", {"Bit": 1}, True),
        ("bit(10)", {"Bit": 0x1FF}, "/wE="),
        ("float", {"Float": 0.10000000149011612}, 0.1),
        ("float", {"Float": 3.4028234663852886e38}, 3.4028235e38),
        ("double", {"Double": 0.1}, 0.1),
        ("date", {"Date": DAY}, 19782),
        ("date", {"Date": {"year": 0, "month": 0, "day": 0}}, None),
        ("date", {"Date": {"year": 69, "month": 1, "day": 1}}, 36160),
        ("datetime(3)", {"DateTime": DAY | CLOCK}, 1_709_210_096_789),
        ("datetime(4)", {"DateTime": DAY | CLOCK}, 1_709_210_096_789_012),
        ("time(6)", {"Time": NEGATIVE}, -1_000_005),
        ("timestamp(2)", {"Timestamp": {"unix_time": 1, "subsecond": 120_000}}, "1970-01-01T00:00:01.12Z"),
        ("timestamp", {"Timestamp": {"unix_time": 0, "subsecond": 0}}, "1970-01-01T00:00:00Z"),
        ("year", {"Year": 2024}, 2024),
        ("set('a','b') character set utf8mb4", {"Set": ["a", "b"]}, "a,b"),
        ("enum('a') character set utf8mb4", {"Enum": 0}, ""),
        ("text character set cp1251", {"Text": {"charset": "cp1251", "base64": "5OA="}}, "да"),
        ("text character set utf16", {"Text": {"charset": "utf16", "base64": "BDQ="}}, "д"),
        ("vector", {"Vector": "zczMPQ=="}, [0.1]),
        ("json", {"Json": {"b": [1, 1.0, 1e20, "é", None, True]}},
         '{"b":[1,1.0,100000000000000000000,"é",null,true]}'),
        ("json", {"Json": "\\u001f\x1f"}, '"\\\\u001f\\u001F"'),
        ("json", {"JsonTyped": {"array": [{"Decimal": "1.10"}, {"Date": DAY}, {"object": {"t": {"Time": CLOCK | {
            "negative": False}}}}]}}, '[1.10,"2024-02-29",{"t":"12:34:56.789012"}]'),
    ],
)  # fmt: skip
def test_default_modes(type_: str, value: Any, expected: Any) -> None:
    found = converted(type_, value)
    assert found == expected
    assert type(found) is type(expected)


def test_other_modes() -> None:
    number, blob = {"Decimal": "-1.50"}, {"Blob": "+/8="}
    assert converted("decimal(3,2)", number, Debezium(decimal_handling_mode="string")) == "-1.50"
    assert converted("decimal(3,2)", number, Debezium(decimal_handling_mode="double")) == -1.5
    most = {"UnsignedInteger": 2**64 - 1}
    assert converted("bigint unsigned", most, Debezium(bigint_unsigned_handling_mode="precise")) == "AP//////////"
    assert converted("blob", blob, Debezium(binary_handling_mode="hex")) == "fbff"
    assert converted("blob", blob, Debezium(binary_handling_mode="base64-url-safe")) == "-_8="
    assert converted("datetime(6)", {"DateTime": DAY | CLOCK}, CONNECT) == 1_709_210_096_789
    assert converted("time", {"Time": NEGATIVE | {"negative": False}}, CONNECT) == 1000
    assert converted("time", {"Time": NEGATIVE}, CONNECT) is None
    early = {"Date": {"year": 69, "month": 1, "day": 1}}
    assert converted("date", early, Debezium(enable_time_adjuster=False)) < -690_000


def test_what_only_the_table_map_says() -> None:
    point = {"Geometry": b64encode(bytes(4) + b"\1\1\0\0\0" + bytes(8) + b"\0\0\0\0\0\0\xf0\x3f").decode()}
    assert converted("geometry", point).keys() == {"wkb", "srid"}
    assert list(converted("geometry", point, is_point=True).items())[:2] == [("x", 0.0), ("y", 1.0)]
    assert converted("date", {"Date": {"year": 0, "month": 0, "day": 0}}, nullable=False) == 0
    assert converted("enum character set cp1251", {"Enum": 2}, members=("а", "б")) == "б"
    assert converted("set character set cp1251", {"Set": 3}, members=("а", "б")) == "а,б"
    assert converted("set character set cp1251", {"Set": 3}) == 3


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20))
def test_a_decimal_comes_back_from_its_bytes(number: Decimal) -> None:
    found = b64decode(converted("decimal(40,4)", {"Decimal": f"{number:.4f}"}))
    assert Decimal(int.from_bytes(found, "big", signed=True)).scaleb(-4) == number
    assert len(found) == 1 or found[0] not in (0, 0xFF) or (found[0] ^ found[1]) & 0x80  # no byte too many


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False,
    allow_infinity=False), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_a_document_comes_back_from_its_text(document: Any) -> None:
    assert json.loads(converted("json", {"Json": document})) == document
