"""cdc-consumer --rewind: what is applied again makes the rows the leader's, also after a stop in the midst of it."""

import time
from pathlib import Path

import pytest

from cdc.config.topic_names import PER_TABLE
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.pair import Pair
from tests.harness.programs import own_name, refused, run, run_well, write_profile
from tests.harness.topic import Body, Stage, number, text

pytestmark = pytest.mark.integration

COLUMNS = ["id", "u"]


def image(id_: int, unique: str) -> list[Body]:
    return [number(id_), text(unique)]


def rewound(stage: Stage, sequence: int, *options: str) -> str:
    return run_well("cdc-consumer", stage.profile, "--rewind", str(sequence), "--until-current", *options)


def rewinds(stage: Stage) -> list[tuple[int, int]]:
    return stage.execute(f"SELECT after_sequence, upto FROM rewinds WHERE resource = '{stage.name}'", database="cdc")


def test_rows_become_the_leaders_again_and_statements_stay_done(stage: Stage) -> None:
    """Its unique values move between rows, so that rows from later are in the way of those from before."""
    path = stage.create_table("t", "(id INT PRIMARY KEY, u VARCHAR(9) UNIQUE)")
    keyed = {"key": ["id"]}
    stage.topic.send(
        [stage.topic.add(path, COLUMNS, image(1, "a"), image(2, "b"), image(3, "c"), image(9, "z"), **keyed)],  # 2
        [stage.topic.update(path, COLUMNS, (image(1, "a"), image(1, "x")), **keyed)],  # 3
        [stage.topic.update(path, COLUMNS, (image(2, "b"), image(2, "a")), **keyed)],  # 4
        [stage.topic.delete(path, COLUMNS, image(3, "c"), **keyed)],  # 5
        [stage.topic.query("CREATE VIEW v AS SELECT 1", ("CreateView", f"{stage.name}/v"), database=stage.name)],  # 6
        [stage.topic.add(path, COLUMNS, image(3, "b"), image(4, "d"), **keyed)],  # 7
        [stage.topic.update(path, COLUMNS, (image(4, "d"), image(5, "d")), **keyed)],  # 8
    )
    stage.apply()
    right = [(1, "x"), (2, "a"), (3, "b"), (5, "d"), (9, "z")]
    assert stage.execute("SELECT * FROM t ORDER BY id") == right
    damage = ["UPDATE t SET u = 'q' WHERE id = 1", "INSERT INTO t VALUES (4, 'e')", "DELETE FROM t WHERE id = 9"]
    stage.execute(*damage, "COMMIT")

    # It ends in the midst, before a statement that is done; the next start goes on with it.
    assert "the checkpoint went back sequence=1 again_upto=8" in rewound(stage, 1, "--until", "5")
    assert "statement stays done sequence=6" in run_well("cdc-consumer", stage.profile, "--until", "7")
    assert (stage.checkpoint(), rewinds(stage)) == (7, [(1, 8)])
    assert "applied again up to sequence 8" in run("cdc-consumer", stage.profile, "--status").stdout
    stage.topic.send([stage.topic.add(path, COLUMNS, image(6, "f"), **keyed)])  # 9, an ordinary one
    assert "sequence=8 next_sequence=9" in run_well("cdc-consumer", stage.profile, "--until", "8")
    assert rewinds(stage) == []
    stage.apply()
    assert stage.checkpoint() == 9
    assert stage.execute("SELECT * FROM t ORDER BY id") == [*right[:4], (6, "f"), right[4]]
    conflicts = f"SELECT sequence, removed FROM conflicts WHERE resource = '{stage.name}'"
    assert stage.execute(conflicts, database="cdc") == [(7, "id=5")]  # which record 8 brought back
    # What another client has written is a conflict again, no longer overwritten untold, even where a row is left of a
    # rewind that a consumer which knew nothing of rewinds has brought to its end.
    left = f"INSERT INTO cdc.rewinds VALUES ('{stage.name}', 1, 8, '{{}}', NOW(6))"
    stage.execute(left, "INSERT INTO t VALUES (7, 'g')", "COMMIT")
    stage.topic.send([stage.topic.add(path, COLUMNS, image(7, "h"), **keyed)])  # 10
    stage.apply()
    assert stage.execute(conflicts, database="cdc")[1:] == [(10, "")]


def test_what_cannot_be_applied_again_is_refused_by_name(stage: Stage) -> None:
    keyed = stage.create_table("t", "(id INT PRIMARY KEY, u VARCHAR(9))")  # 1
    keyless = stage.create_table("k", "(id INT, u VARCHAR(9))")  # 2
    lower = stage.create_table("f", "(id INT PRIMARY KEY, u VARCHAR(9), UNIQUE KEY ((LOWER(u))))")  # 3
    alter = stage.topic.query("ALTER TABLE t COMMENT 'x'", ("AlterTable", keyed), database=stage.name)
    add = stage.topic.add
    stage.topic.send(
        [add(keyed, COLUMNS, image(1, "a"), key=["id"])],  # 4
        [alter],  # 5
        [
            add(keyless, COLUMNS, image(1, "a"), image(1, "a")),  # 6
            add(lower, COLUMNS, image(1, "a"), key=["id"]),  # 7
            add(keyed, COLUMNS, image(3, "long for u"), key=["id"]),  # 8
            add(keyed, COLUMNS, image(1, "a"), key=["id"]) | {"operation": {"Add": {"rows": []}}},  # 9
        ],
        [add(keyed, COLUMNS, image(2, "b"), key=["id"])],  # 10
    )
    run_well("cdc-consumer", stage.profile, "--until-current", "--skip", "8")
    line = refused("cdc-consumer", stage.profile, "--rewind", "3")
    assert f"changes {stage.name}.t: ALTER TABLE t COMMENT … (sequence 5)" in line
    assert f"rows of table {stage.name}.k, which has no key: they would be there twice (sequence 6)" in line
    assert f"rows of table {stage.name}.f, which has a unique key with an expression" in line
    assert "a record that was skipped (cdc-consumer --skip) (sequence 8)" in line
    assert "--rewind 9 or later is possible" in line and "--until 10" in line
    assert "record 6 is not the last one of its transaction" in refused("cdc-consumer", stage.profile, "--rewind", "6")
    assert "is at sequence 10, which is not after 10" in refused("cdc-consumer", stage.profile, "--rewind", "10")
    assert stage.checkpoint() == 10
    stage.execute("DELETE FROM t", "COMMIT")
    rewound(stage, 9)
    assert stage.execute("SELECT * FROM t") == [(2, "b")]
    assert len(stage.execute("SELECT * FROM k")) == 2


def test_with_a_delay_and_skips(tmp_path: Path, stage: Stage, follower: MySql, kafka: Kafka) -> None:
    """What was applied before is not held, and a record that is skipped leaves its rows as they are."""
    path = stage.create_table("t", "(id INT PRIMARY KEY, u VARCHAR(20))")
    keyed = {"key": ["id"]}
    bodies = [
        stage.topic.add(path, COLUMNS, image(1, "a"), image(2, "b"), **keyed),  # 2
        stage.topic.add(path, COLUMNS, image(3, "too long here"), **keyed),  # 3
        stage.topic.update(path, COLUMNS, (image(1, "a"), image(1, "too long as well")), **keyed),  # 4
        stage.topic.update(path, COLUMNS, (image(2, "b"), image(2, "c")), **keyed),  # 5
    ]
    for body in bodies:
        (record,) = stage.topic.transaction([body])
        record["transaction"]["ts_us"] = int(time.time() * 1e6)
        stage.topic.send_raw(record)
    stage.apply()
    stage.execute("UPDATE t SET u = 'q'", "COMMIT", "ALTER TABLE t MODIFY u VARCHAR(6)")
    write_profile(tmp_path, follower, kafka, name=stage.name, resource=stage.name, consumer={"delay_seconds": 1000})
    line = refused("cdc-consumer", stage.profile, "--rewind", "1", "--until-current", status=3)
    assert "at sequence 3" in line
    run_well("cdc-consumer", stage.profile, "--until-current", "--skip", "3", "--skip", "4")
    assert (stage.checkpoint(), rewinds(stage)) == (5, [])
    assert stage.execute("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "c"), (3, "q")]
    skipped = f"SELECT sequence FROM ledger WHERE resource = '{stage.name}' AND state = 'skipped'"
    assert stage.execute(skipped, database="cdc") == [(3,), (4,)]
    assert "that was skipped (cdc-consumer --skip) (sequence 3)" in refused(
        "cdc-consumer", stage.profile, "--rewind", "2"
    )


def test_over_many_topics_and_renamed(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    layout = {"kafka": {"layout": PER_TABLE, "prefix": f"{name}-"}, "filters": {"include_dbs": [name]}}
    start = {"producer": {"start": "now"}}
    theirs = {"renames": {name: f"{name}_x"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=layout | start, target=layout | theirs)
    run_well("cdc-producer", pair.source, "--until-current")
    tables = [f"CREATE TABLE {table} (id INT PRIMARY KEY)" for table in "abc"]
    rows = [f"INSERT INTO {table} VALUES ({id_})" for id_ in (1, 2) for table in "abc"]
    pair.on_leader(f"CREATE DATABASE {name}", f"USE {name}", *tables, *rows)
    pair.replicate()
    pair.on_follower("DELETE FROM a", "DELETE FROM b", "UPDATE c SET id = 3 WHERE id = 2", database=f"{name}_x")
    # Records 0 to 3 made the tables; 4, 5, 6 are the rows 1.
    log = run_well("cdc-consumer", pair.target, "--rewind", "4", "--until", "6")
    assert "the checkpoint went back sequence=4 again_upto=9" in log
    # In another database rows of others would be overwritten.
    usual = pair.target.read_text()
    pair.target.write_text(usual.replace(f"{name}_x", f"{name}_y"))
    assert f'"renames": {{"{name}": "{name}_x"}}}}; at' in refused("cdc-consumer", pair.target)
    pair.target.write_text(usual)
    run_well("cdc-consumer", pair.target, "--until-current")
    found = [[row for (row,) in ids(follower, f"{name}_x.{table}")] for table in "abc"]
    assert found == [[2], [1, 2], [1, 2, 3]]  # the rows that no record names stay as they are
    pair.on_leader("INSERT INTO a VALUES (7)", database=name)
    pair.replicate()
    assert ids(follower, f"{name}_x.a") == ((2,), (7,))


def ids(server: MySql, table: str) -> tuple[tuple[int, ...], ...]:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {table} ORDER BY id")
        return tuple(cursor.fetchall())
