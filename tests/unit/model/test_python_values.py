"""The Python value of each value that a record may contain."""

from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from cdc.model.values import Value, python_value


def clock(hour: int, minute: int, second: int, subsecond: int = 0) -> dict[str, int]:
    return {"hour": hour, "minute": minute, "second": second, "subsecond": subsecond}


def day(year: int, month: int, of_month: int) -> dict[str, int]:
    return {"year": year, "month": month, "day": of_month}


BYTES = b64encode(b"\x00\xff").decode()


@pytest.mark.parametrize(("value", "wanted"), [
    ("Null", None),
    ({"SignedInteger": -1}, -1), ({"UnsignedInteger": 2**64 - 1}, 2**64 - 1), ({"Bit": 5}, 5), ({"Year": 2026}, 2026),
    ({"Double": 0.1}, 0.1), ({"Decimal": "-1.50"}, Decimal("-1.50")),
    ({"String": "a\0é"}, "a\0é"), ({"Enum": "x"}, "x"), ({"Enum": 0}, 0),
    ({"Text": {"charset": "eucjpms", "base64": BYTES}}, b"\x00\xff"),
    ({"Set": ["a", "b"]}, ("a", "b")), ({"Set": []}, ()), ({"Set": 3}, 3),
    ({"Blob": BYTES}, b"\x00\xff"), ({"Geometry": ""}, b""), ({"Vector": BYTES}, b"\x00\xff"),
    ({"Date": day(1999, 3, 30)}, date(1999, 3, 30)), ({"Date": day(2026, 0, 1)}, "2026-00-01"),
    ({"Date": day(2023, 2, 31)}, "2023-02-31"),
    ({"DateTime": day(2023, 2, 31) | clock(1, 2, 3)}, "2023-02-31 01:02:03"),
    ({"DateTime": day(1999, 3, 30) | clock(1, 2, 3, 4)}, datetime(1999, 3, 30, 1, 2, 3, 4)),
    ({"DateTime": day(0, 0, 0) | clock(1, 2, 3, 4)}, "0000-00-00 01:02:03.000004"),
    ({"Timestamp": {"unix_time": 1, "subsecond": 5}}, datetime(1970, 1, 1, 0, 0, 1, 5, UTC)),
    ({"Timestamp": {"unix_time": 0, "subsecond": 0}}, "0000-00-00 00:00:00"),
    ({"Time": {"negative": True} | clock(838, 59, 59, 999999)},
     -timedelta(hours=838, minutes=59, seconds=59, microseconds=999999)),
    ({"Json": {"String": [1, None]}}, {"String": [1, None]}),
    ({"JsonTyped": {"object": {"a": {"array": [1, "x", {"Decimal": "1.0"}, {"Date": day(2020, 1, 2)},
      {"LocalTimestamp": day(2020, 1, 2) | clock(3, 4, 5)}, {"Opaque": {"type": 252, "base64": BYTES}}]}}}},
     {"a": [1, "x", Decimal("1.0"), date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5), b"\x00\xff"]}),
])  # fmt: skip
def test_each_tag(value: Value, wanted: object) -> None:
    found = python_value(value)
    assert (found, type(found)) == (wanted, type(wanted))
