"""The private names of mysql-replication and pymysql that the producer uses: they are listed here, and they exist."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from pymysql.connections import Connection
from pymysqlreplication import BinLogStreamReader, binlogstream

import cdc.producer
from cdc.producer.binlog import source

PRIVATE = {"_BinLogStreamReader__connect_to_stream", "_stream_connection", "_sock", "_force_close", "_result", "_rfile"}
PUBLIC_ALL_THE_SAME = {"_asdict", "_make", "_replace"}  # of every NamedTuple


def private_names(text: str) -> Iterator[str]:
    """The private attributes that a module uses of anything but its own objects and Kafka's error codes."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.endswith("__"):
            continue
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner not in ("self", "cls", "KafkaError") and node.attr not in PUBLIC_ALL_THE_SAME:
            yield node.attr


def test_the_producer_uses_no_other_private_names() -> None:
    modules = Path(cdc.producer.__file__).parent.rglob("*.py")
    assert {name for module in modules for name in private_names(module.read_text())} == PRIVATE


@pytest.mark.parametrize("line", ["reader._rfile", "a.b._execute_command()", "x = reader._stream_connection._sock"])
def test_a_private_name_is_found_wherever_it_stands(line: str) -> None:
    assert set(private_names(line)) & {"_rfile", "_execute_command", "_sock"}


def test_own_names_and_documented_ones_are_not_private() -> None:
    assert not [*private_names("self._file; cls._new; KafkaError._FENCED; header._asdict(); module.__name__")]


def test_the_private_names_exist() -> None:
    connect = getattr(BinLogStreamReader, "_BinLogStreamReader__connect_to_stream")  # noqa: B009
    assert "_stream_connection" in connect.__code__.co_names
    assert hasattr(Connection, "_sock")
    assert hasattr(Connection, "_force_close")
    assert {"_result", "_rfile"} <= {name for method in vars(Connection).values() for name in names_in(method)}


def names_in(method: object) -> tuple[str, ...]:
    return method.__code__.co_names if inspect.isfunction(method) else ()


def test_the_library_makes_gtid_sets_by_the_name_that_is_replaced() -> None:
    assert binlogstream.GtidSet is source._GtidSet
    text = inspect.getsource(BinLogStreamReader)
    assert "gtid_set = GtidSet(self.auto_position)" in text
    used = {line.split("gtid_set.")[1].split(")")[0].strip("(") for line in text.splitlines() if "gtid_set." in line}
    assert used == {"encoded_length", "encoded"}


def test_kafka_errors_that_are_told_apart_by_name_exist() -> None:
    modules = Path(cdc.producer.__file__).parent.rglob("*.py")
    names = {
        node.attr
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "KafkaError"
    }
    assert names
    assert all(isinstance(getattr(KafkaError, name), int) for name in names)
