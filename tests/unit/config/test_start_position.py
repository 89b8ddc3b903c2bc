"""What producer.start and consumer.start may say."""

import pytest

from cdc.config.profile import parsed_copy, parsed_start
from cdc.errors import UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize("text", [f"{UUID}:1-5", f"{UUID}:7", f"{UUID}:1-3:tag:1,\n0{UUID[1:]}:9"])
def test_a_gtid_set(text: str) -> None:
    assert str(parsed_start(text)) == str(GtidSet.parse(text))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("binlog.000012:4567", Position("binlog.000012", 4567)),
        ("mysql-bin.host.1000000:4", Position("mysql-bin.host.1000000", 4)),
    ],
)
def test_a_place(text: str, place: Position) -> None:
    assert parsed_start(text) == place


@pytest.mark.parametrize(
    "text", ["", " ", "Now", "yesterday", "binlog.000012", "binlog:4", "binlog.000012:x", UUID, f"{UUID}:0"]
)
def test_neither(text: str) -> None:
    with pytest.raises(UserError, match="is not a position to start from"):
        parsed_start(text)


@pytest.mark.parametrize("text", ["", " ", ",", "now", "binlog.000012:4567", UUID, f"{UUID}:0", f"{UUID}:5-3"])
def test_no_copy(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parsed_copy(text)
    assert refused.value.where == "profile key consumer.start"
    assert refused.value.hint


def test_a_copy() -> None:
    assert str(parsed_copy(f" {UUID.upper()}:1-3:5,\n")) == f"{UUID}:1-3:5"


def test_a_gtid_position_of_mariadb() -> None:
    for parsed in (parsed_copy, parsed_start):
        assert str(parsed("0-1-12, 3-7-5")) == "0-1:1-12,3-7:1-5"
