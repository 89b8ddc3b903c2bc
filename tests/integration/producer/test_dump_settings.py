"""A dump has the same events wherever it begins, under each setting of the leader that changes what it sends."""

import json
import shutil
import threading
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from cdc.errors import CdcError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.packets import flat
from cdc.producer.binlog.source import BinlogSource, Replica
from cdc.sandbox.fetch.mysql_programs import MySqlPrograms, mysql_programs
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from tests.checks.binlog import position
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.integration

_ROWS = "INSERT INTO d.a VALUES ({0}, '{{\"a\": 1, \"b\": 2}}', REPEAT('x', 2000))"
_DOCUMENT = "UPDATE d.a SET j = JSON_SET(j, '$.a', {0}) WHERE i = {0}"
_SETTINGS = {
    "binlog_encryption": ("OFF", "ON"),
    "binlog_checksum": ("NONE", "CRC32"),
    "binlog_transaction_compression": ("OFF", "ON"),
    "binlog_row_value_options": ("", "PARTIAL_JSON"),
}
_MADE_UP = {et.ROTATE, et.FORMAT_DESCRIPTION, et.PREVIOUS_GTIDS, *et.HEARTBEATS}
Event = tuple[str, int, int, bytes]  # file, end, type, data


def execute(server: MySql, *statements: str) -> str:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("SELECT @@GLOBAL.gtid_executed")
        return str(cursor.fetchone()[0])


def read(leader: MySql, start: Position, gtids: str, *, end: tuple[str, int]) -> list[Event]:
    """The events of transactions from there up to ``end``."""
    settings = {"host": "127.0.0.1", "port": leader.port, "user": USER, "password": PASSWORD}
    found: list[Event] = []
    with BinlogSource.open(
        settings,
        name="leader",
        replica=Replica(4711, "6b2c2a68-0000-4000-8000-000000000001"),
        heartbeat_seconds=1,
        position=start,
        gtid_set=GtidSet.parse(gtids) if gtids else None,
    ) as source:
        for events in source.chunks(threading.Event()):
            found += [(each.file, each.end, each.type, each.data) for each in flat(events) if each.type not in _MADE_UP]
            if any((each.file, each.end) == end for each in flat(events)):
                return found
    raise AssertionError("the dump has ended")


def with_keyring(folder: Path) -> MySqlPrograms:
    """The usual server with the component in whose file it has the keys of an encrypted binlog.

    It looks for what to load beside its program, so that is a copy.
    """
    programs, name = mysql_programs(), "component_keyring_file"
    *loader, server = programs.server
    usual = [option.partition("=")[2] for option in programs.options if option.startswith("--basedir=")]
    (component,) = Path(usual[0] if usual else server).parent.rglob(f"{name}.so")
    folder.mkdir()
    for file in (Path(server), component):
        shutil.copy(file, folder)
    (folder / "mysqld.my").write_text(json.dumps({"components": f"file://{name}"}))
    (folder / f"{name}.cnf").write_text(json.dumps({"path": str(folder / "keys"), "read_only": False}))
    options = (*programs.options, f"--plugin-dir={folder}")
    return replace(programs, server=(*loader, str(folder / Path(server).name)), options=options)


def test_a_dump_begins_anywhere_in_a_file_of_any_kind(mysql_server: MySqlFactory, tmp_path: Path) -> None:
    """The first file since the server's start is another one than those after a rotation, and files of several kinds
    follow one another in a dump."""
    programs = with_keyring(tmp_path / "keyring")
    leader = mysql_server("--binlog-checksum=NONE", find=lambda: programs)
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY, j JSON, t TEXT)")
    places: list[tuple[str, tuple[str, int], str]] = []
    number = 0
    for values in product(*_SETTINGS.values()):
        kind = dict(zip(_SETTINGS, values, strict=True))
        # A change of the checksum begins a new file, except for the first time.
        execute(leader, *(f"SET GLOBAL {name} = '{value}'" for name, value in kind.items()))
        for first in (True, False):
            if not first:
                execute(leader, "FLUSH BINARY LOGS")
            for _ in range(2):
                number += 1
                execute(leader, _ROWS.format(number), _DOCUMENT.format(number))
                places.append((str(kind), position(leader), execute(leader)))
    number += 1
    execute(leader, _ROWS.format(number))
    end = position(leader)
    begins = {file.read_bytes()[:4] for file in leader.data.glob("binlog.0*")}
    assert begins == {b"\xfebin", b"\xfdbin"}  # plain ones, and encrypted ones
    whole = read(leader, Position("binlog.000001", 4), "", end=end)
    failed = {}
    for kind_said, place, gtids in places:
        wanted = [event for event in whole if event[:2] > place]
        for way, at, held in (("position", Position(*place), ""), ("GTIDs", Position(place[0], 4), gtids)):
            try:
                found = read(leader, at, held, end=end)
            except CdcError as error:
                failed[kind_said, place, way] = str(error)
            else:
                if found != wanted:
                    failed[kind_said, place, way] = "other events"
    assert failed == {}
