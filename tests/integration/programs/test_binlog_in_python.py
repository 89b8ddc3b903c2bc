"""``cdc.binlog``: the transactions in a leader's binlog in Python, without Kafka, by one reader or by several."""

import threading
from pathlib import Path

import pytest
import toml

import cdc
from cdc.errors import PromiseError, UserError
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from tests.harness.wait import LIMIT_SECONDS, until
from tests.integration.programs.test_records_in_python import execute

pytestmark = pytest.mark.integration

NAME = "binlog_in_python"


@pytest.fixture
def profile(leader: MySql, tmp_path: Path) -> Path:
    database = {"ip_or_host": "127.0.0.1", "port": leader.port, "user": USER, "password": PASSWORD}
    path = tmp_path / "leader.toml"
    content = {"mysql_resource_name": NAME, "database": database, "filters": {"include_dbs": [NAME]}}
    path.write_text(toml.dumps(content))
    return path


def now(leader: MySql) -> str:
    """The place behind all that the leader has executed."""
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_executed")
        ((executed,),) = cursor.fetchall()
    return str(executed).replace("\n", "") or "oldest"


def fill(leader: MySql) -> None:
    execute(
        leader, f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.a (id INT PRIMARY KEY, n DECIMAL(5, 2))",
        f"CREATE TABLE {NAME}.b (id INT)", "BEGIN", f"INSERT INTO {NAME}.a VALUES (1, 1.5), (2, NULL)",
        f"INSERT INTO {NAME}.b VALUES (7)", "COMMIT", "CREATE DATABASE elsewhere_in_python",
        f"UPDATE {NAME}.a SET id = 3 WHERE id = 2",
    )  # fmt: skip


def test_a_binlog_is_read_by_transactions_and_again_from_any_of_them(leader: MySql, profile: Path) -> None:
    start = now(leader)
    fill(leader)
    reader = cdc.binlog(profile, after=start)
    transactions = list(reader)
    assert [[each.kind for each in one.changes()] for one in transactions] == [
        ["statement"], ["statement"], ["statement"], ["insert", "insert", "insert"], ["update"],
    ]  # fmt: skip
    (last,) = transactions[-1].changes()
    assert (last.table, last.key, last.before, last.after) == ("a", ("id",), {"id": 2, "n": None}, {"id": 3, "n": None})
    assert list(reader) == transactions  # each iteration begins at the same place
    for place, one in enumerate(transactions):
        rest = [each.gtid for each in cdc.binlog(profile, after=one.after)]
        assert rest == [each.gtid for each in transactions[place + 1 :]]
    everything = [each.gtid for each in cdc.binlog(str(profile), after="oldest")]
    assert everything[-5:] == [each.gtid for each in transactions]


def test_several_readers_share_the_tables(leader: MySql, profile: Path) -> None:
    start = now(leader)
    fill(leader)
    tables = [f"t{number}" for number in range(8)]
    execute(
        leader,
        *(f"CREATE TABLE {NAME}.{table} (id INT)" for table in tables),
        *(f"INSERT INTO {NAME}.{table} VALUES ({number})" for number in range(3) for table in tables),
    )
    found: list[list[tuple[str | None, object]]] = [[], [], []]

    def read(number: int) -> None:
        for change in cdc.binlog(profile, after=start, share=(number, 3)).changes():
            found[number].append((change.table, change.after and change.after["id"]))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    whole = [(each.table, each.after and each.after["id"]) for each in cdc.binlog(profile, after=start).changes()]
    rows = [{table for table, _ in part if table} for part in found]
    assert sum(map(len, rows)) == len(set.union(*rows)) == len({table for table, _ in whole if table})
    assert [each for each in found[0] if each[0] is None] == [each for each in whole if each[0] is None]
    for part, names in zip(found, rows, strict=True):
        assert [each for each in part if each[0]] == [each for each in whole if each[0] in names]


def test_it_follows_until_it_is_stopped(leader: MySql, profile: Path) -> None:
    execute(leader, f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.a (id INT)")
    following, found = cdc.binlog(profile, after="now", follow=True), list[object]()
    reading = threading.Thread(target=lambda: found.extend(each.after for each in following.changes()))
    reading.start()
    try:
        for number in range(1000):
            execute(leader, f"INSERT INTO {NAME}.a VALUES ({number})")
            if found:
                break
        until(lambda: found, what="a row")
    finally:
        following.stop()
        reading.join(LIMIT_SECONDS)
    assert not reading.is_alive()


def test_what_cannot_be_read_is_told(leader: MySql, profile: Path) -> None:
    with pytest.raises(UserError, match="copies no tables"):
        cdc.binlog(profile, after="copy")
    with pytest.raises(UserError, match="not a share"):
        cdc.binlog(profile, share=(2, 2))
    with pytest.raises(UserError, match="not a position"):
        cdc.binlog(profile, after="yesterday")
    with pytest.raises(UserError, match="no such file"):
        cdc.binlog(profile.with_name("none.toml"))
    start = now(leader)
    execute(
        leader, f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.a (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO {NAME}.a VALUES (1, 1)", "SET binlog_row_image = MINIMAL", f"UPDATE {NAME}.a SET n = 2",
    )  # fmt: skip
    reading = iter(cdc.binlog(profile, after=start))
    assert len([next(reading) for _ in range(3)]) == 3
    with pytest.raises(PromiseError, match="without all its columns"):
        next(reading)
