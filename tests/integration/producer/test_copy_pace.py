"""How fast a leader is read while its tables are copied."""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.config.profile import ServerAddress
from cdc.producer.copy import reader
from cdc.producer.copy.reader import Answer, Reader, Wanted
from cdc.producer.copy.throttle import Followers, LeaderLoad, Replicas, RowRate, Throttles
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.sandbox.server.process import free_port
from tests.harness.copying import NOTHING
from tests.harness.programs import own_name
from tests.harness.replica import Replica
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.server_pool import programs_of
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

_ROWS = 1000


@contextmanager
def _reading(leader: MySql, name: str, replicas: Sequence[int] = (), **limits: Any) -> Iterator[Reader]:
    """Of a new table; a copy waits for the ``replicas`` at these ports."""
    with leader.root(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {name}.t VALUES " + ", ".join(f"({number})" for number in range(_ROWS)))
    settings = {"host": "127.0.0.1", "port": leader.port, "user": USER, "password": PASSWORD}
    nobody: Any = None
    followers = Followers(nobody, limit=0, log=lambda *_, **__: None)
    defaults: dict[str, Any] = {"rows_per_second": 0, "threads_running": 0, "log": lambda *_, **__: None} | limits
    addresses = [ServerAddress("127.0.0.1", port) for port in replicas]
    asked = Replicas(addresses, settings, seconds=0, log=defaults["log"])
    throttles = Throttles(
        rate=RowRate(defaults["rows_per_second"]),
        followers=defaults.get("followers", followers),
        replicas=asked,
        load=LeaderLoad(defaults["threads_running"], log=defaults["log"]),
    )
    reading = Reader(settings, name="leader", throttles=throttles, read_structure=lambda: pytest.fail("not asked"))
    try:
        yield reading
    finally:
        reading.close()


def _answer(reading: Reader) -> Answer:
    found: list[Answer] = []
    until(lambda: bool(found) or bool(found.extend(filter(None, [reading.answer()])) or found), what="an answer")
    return found[0]


def test_no_more_rows_are_read_in_a_second(tmp_path: Path, leader: MySql) -> None:
    name = own_name(tmp_path)
    with _reading(leader, name, rows_per_second=400) as reading:
        started, after, sizes = time.monotonic(), None, []
        while not sizes or after is not None:
            reading.ask(Wanted((name, "t"), after, NOTHING))
            chunk = _answer(reading).chunk
            assert chunk is not None
            sizes.append(len(chunk.rows))
            after = chunk.upto
        assert sizes == [400, 400, 200]
        assert time.monotonic() - started >= 2.0


@pytest.mark.parametrize(
    "after",
    [
        ('{"SignedInteger":5}', '{"SignedInteger":5}'),
        ('{"Text":{"charset":"ucs2","base64":"AGE="}}',),
        ('{"Blob":"AGE="}',),
        ('{"String":"a"}',),
    ],
)
def test_nothing_is_read_behind_a_key_of_before_an_alter(tmp_path: Path, leader: MySql, after: tuple[str, ...]) -> None:
    name = own_name(tmp_path)
    with _reading(leader, name) as reading:
        reading.ask(Wanted((name, "t"), after, NOTHING))
        answer = _answer(reading)
        assert answer.definition is not None
        assert (answer.definition.key, answer.chunk) == (("id",), None)


def test_a_definition_is_read_again_once_the_leader_shows_another(tmp_path: Path, leader: MySql) -> None:
    """Statements that are not logged have altered the table between two chunks."""
    name = own_name(tmp_path)
    with _reading(leader, name) as reading, leader.root(autocommit=True) as connection:

        def read(after: tuple[str, ...] | None) -> Answer:
            reading.ask(Wanted((name, "t"), after, NOTHING))
            return _answer(reading)

        def alter(statement: str) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET sql_log_bin = 0")
                cursor.execute(f"ALTER TABLE {name}.t {statement}")

        first, before = read(None), ('{"SignedInteger":499}',)
        assert first.chunk is not None
        second = read(before)
        assert second.definition is first.definition and second.chunk is not None
        alter("ADD n INT NOT NULL DEFAULT 7")
        assert read(before).chunk is None
        third = read(before)
        assert third.definition is not None and third.chunk is not None
        assert [column.name for column in third.definition.columns] == ["id", "n"]
        assert third.chunk.rows[0].endswith(',{"SignedInteger":7}]}')
        # The leader shows the characters that utf8mb3 lacks in the same way.
        for member in "😀", "😁":
            alter(f"DROP n, ADD n ENUM('{member}') NOT NULL")
            answers = [read(before), read(before)]
            if programs_of("leader")().version < (9,):
                continue  # such a table is refused
            rows = {answer.chunk.rows[0] for answer in answers if answer.chunk}
            assert rows == {f'{{"cols":[{{"SignedInteger":500}},{{"Enum":"{member}"}}]}}'}


@pytest.mark.parametrize("variable", ["sql_quote_show_create = 0", "show_create_table_verbosity = 1"])
def test_a_variable_that_changes_how_the_leader_shows_tables(tmp_path: Path, leader: MySql, variable: str) -> None:
    """The sessions of a copy begin before and after the SET GLOBAL."""
    name = own_name(tmp_path)
    with _reading(leader, name) as reading, leader.root(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name}.bare (n INT)")
        reading.ask(Wanted((name, "t"), None, NOTHING))
        assert _answer(reading).chunk is not None
        try:
            cursor.execute(f"SET GLOBAL {variable}")
            reading.ask(Wanted((name, "bare"), None, NOTHING))
            assert _answer(reading).seen is not None
        finally:
            cursor.execute(f"SET GLOBAL {variable.split()[0]} = DEFAULT")


def test_nothing_is_read_while_the_leader_is_busy(tmp_path: Path, leader: MySql) -> None:
    name, said = own_name(tmp_path), list[str]()
    with leader.root(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Threads_running'")
        limit = int(cursor.fetchone()[1]) + 2
        # Each waits for a lock that this session has.
        cursor.execute("SELECT GET_LOCK(%s, 600)", (name,))
        busy = [threading.Thread(target=_wait_for_lock, args=(leader, name)) for _ in range(limit)]
        for thread in busy:
            thread.start()
        with _reading(leader, name, threads_running=limit, log=lambda what, **_: said.append(what)) as reading:
            until(lambda: _running(leader) > limit, what="a busy leader")
            reading.ask(Wanted((name, "t"), None, NOTHING))
            until(lambda: said == ["the copy waits for the leader"], what="the reading waits")
            assert reading.answer() is None
            cursor.execute("SELECT RELEASE_LOCK(%s)", (name,))
            answer = _answer(reading)
        assert answer.chunk is not None
        assert len(answer.chunk.rows) == _ROWS
        assert said == ["the copy waits for the leader", "the copy continues"]
    for thread in busy:
        thread.join()


def test_a_chunk_that_waits_for_a_follower_does_not_hold_up_the_end(
    tmp_path: Path, leader: MySql, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It ends by itself, however long that takes here; its connections need not be broken.
    monkeypatch.setattr(reader, "_END_SECONDS", LIMIT_SECONDS)
    monkeypatch.setattr(reader, "_break", lambda _: pytest.fail("a connection was broken"))
    name, places = own_name(tmp_path), iter([{"f": 1}])
    behind: Any = SimpleNamespace(look=lambda: next(places, {"f": 2}))
    followers = Followers(behind, limit=1, log=lambda *_, **__: None)
    followers.written(9, 100)
    with _reading(leader, name, followers=followers) as reading:
        for _ in range(2):  # the first look shows no follower that moves
            reading.ask(Wanted((name, "t"), None, NOTHING))
        until(lambda: reading.waits_for == "f", what="the wait")
        assert _answer(reading).chunk is not None
        assert reading.answer() is None
    assert followers.waits_for is None


def test_nothing_is_read_while_a_replica_is_behind(tmp_path: Path, mysql_server: MySqlFactory) -> None:
    name, said = own_name(tmp_path), list[tuple[str, str]]()
    leader, server = mysql_server(), mysql_server(server_id=3)
    replica = Replica.make(leader, server)
    _execute(server, "STOP REPLICA")

    def log(what: str, *, why: str = "", **_: Any) -> None:
        said.append((what, re.sub("[0-9]+", "N", why)))

    waits = "the copy waits for a replica"
    with _reading(leader, name, [server.port], log=log) as reading:
        reading.ask(Wanted((name, "t"), None, NOTHING))
        until(lambda: bool(said), what="the wait for a replica that is stopped")
        _execute(server, "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600", "START REPLICA")
        until(lambda: len(said) > 1, what="the wait for a replica that is behind")
        assert reading.answer() is None
        _execute(server, "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0", "START REPLICA")
        assert replica.catch_up() == ""
        assert _answer(reading).chunk is not None
    assert [said[0], said[-2], said[-1]] == [
        (waits, "it does not replicate"), (waits, "it is N s behind"), ("the copy continues", "")
    ]  # fmt: skip


def test_a_replica_that_is_away_is_waited_for_and_named(tmp_path: Path, leader: MySql) -> None:
    name, said, away = own_name(tmp_path), list[str](), free_port()
    with _reading(
        leader, name, [away], log=lambda _, *, replica, why, **__: said.append(f"{replica} {why}")
    ) as reading:
        reading.ask(Wanted((name, "t"), None, NOTHING))
        until(lambda: bool(said), what="the wait for a replica that is away")
        assert reading.answer() is None
    assert [text[: text.index(":", 20)] for text in said] == [f"127.0.0.1:{away} it can't be asked"]


def _execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _wait_for_lock(leader: MySql, name: str) -> None:
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 600), RELEASE_LOCK(%s)", (name, name))


def _running(leader: MySql) -> int:
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Threads_running'")
        return int(cursor.fetchone()[1])
