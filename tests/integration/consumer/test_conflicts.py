"""Foreign writes on the follower: the leader's image wins and is logged, or the stream stops; nothing in between."""

import base64
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc.consumer.source.assembler import MOST_BYTES
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import refused, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.topic import Stage, number, text

pytestmark = pytest.mark.integration

COLUMNS = ["id", "u", "name"]


def table(stage: Stage, *rows: tuple[int, int, str]) -> str:
    path = stage.create_table("t", "(id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20), UNIQUE (name(3)))")
    if rows:
        stage.topic.send([stage.topic.add(path, COLUMNS, *[image(*row) for row in rows], key=["id"])])
    stage.apply()
    return path


def image(key: int, unique: int, name: str) -> list[object]:
    return [number(key), number(unique), text(name)]


def rows(stage: Stage) -> list[tuple[object, ...]]:
    return stage.execute("SELECT * FROM t ORDER BY id")


def conflicts(log: str) -> list[str]:
    return [line for line in log.splitlines() if " conflict " in line]


def test_an_update_of_a_missing_row_inserts_it(stage: Stage) -> None:
    path = table(stage, (1, 1, "aaa"), (2, 2, "bbb"))
    stage.execute("DELETE FROM t WHERE id = 1")
    pairs = [(image(1, 1, "aaa"), image(1, 1, "ccc")), (image(2, 2, "bbb"), image(2, 2, "ddd"))]
    stage.topic.send([stage.topic.update(path, COLUMNS, *pairs, key=["id"])])
    log = stage.apply()
    assert rows(stage) == [(1, 1, "ccc"), (2, 2, "ddd")]
    (line,) = conflicts(log)
    for part in ("operation=Update", f"uri=flv://{stage.name}/{path}", "key=id=1", "sequence=3"):
        assert part in line
    assert "conflicts=1" in log


def test_a_unique_key_of_an_expression(stage: Stage) -> None:
    """It is in the way only where it clashes; which row that is no record says."""
    path = stage.create_table("t", "(id INT PRIMARY KEY, u INT, name VARCHAR(20), UNIQUE ((LOWER(name))))")
    stage.topic.send([stage.topic.add(path, COLUMNS, image(1, 1, "aaa"), key=["id"])])
    stage.apply()
    stage.execute("UPDATE t SET u = 9, name = 'foreign' WHERE id = 1")
    stage.topic.send([stage.topic.update(path, COLUMNS, (image(1, 1, "aaa"), image(1, 2, "bbb")), key=["id"])])
    assert len(conflicts(stage.apply())) == 1
    stage.execute("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (5, 5, 'CCC')")
    stage.topic.send([stage.topic.update(path, COLUMNS, (image(1, 2, "bbb"), image(1, 3, "ccc")), key=["id"])])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert "the record does not show which row clashes" in line
    assert "'t.functional_index'" in line
    assert rows(stage) == [(5, 5, "CCC")]
    stage.execute("DELETE FROM t")
    assert len(conflicts(stage.apply())) == 1
    assert rows(stage) == [(1, 3, "ccc")]


def test_a_key_that_takes_null_on_the_follower(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """A row that another one stands in the way of must not take that one's place with no key at all."""
    settings = {"before_images": "ignore"}
    stage = Stage.make(tmp_path, follower, kafka, name="key_takes_null", consumer=settings)
    path = stage.create_table("t", "(id INT NULL, u INT UNIQUE, name VARCHAR(20), UNIQUE (id))")
    stage.topic.send([stage.topic.add(path, COLUMNS, image(1, 1, "aaa"), image(2, 2, "bbb"), key=["id"])])
    stage.apply()
    stage.execute("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (7, 1, 'foreign')")
    pairs = [(image(1, 1, "aaa"), image(1, 1, "ccc")), (image(2, 2, "bbb"), image(2, 2, "ddd"))]
    stage.topic.send([stage.topic.update(path, COLUMNS, *pairs, key=["id"])])
    assert len(conflicts(stage.apply())) == 1
    assert rows(stage) == [(1, 1, "ccc"), (2, 2, "ddd")]


def test_a_delete_of_a_missing_row_is_counted(stage: Stage) -> None:
    path = table(stage, (1, 1, "aaa"), (2, 2, "bbb"))
    stage.execute("DELETE FROM t WHERE id = 1")
    stage.topic.send([stage.topic.delete(path, COLUMNS, image(1, 1, "aaa"), image(2, 2, "bbb"), key=["id"])])
    assert len(conflicts(stage.apply())) == 1
    assert rows(stage) == []


def test_an_insert_replaces_every_row_that_clashes(stage: Stage) -> None:
    path = table(stage)
    stage.execute("INSERT INTO t VALUES (1, 10, 'xxx'), (2, 20, 'yyy'), (3, 30, 'zzzzz'), (4, 40, 'www')")
    stage.topic.send([stage.topic.add(path, COLUMNS, image(1, 20, "zzz1"), key=["id"])])
    assert len(conflicts(stage.apply())) == 1
    assert rows(stage) == [(1, 20, "zzz1"), (4, 40, "www")]


def test_an_update_that_clashes_replaces_the_foreign_row(stage: Stage) -> None:
    path = table(stage, (1, 1, "aaa"))
    stage.execute("INSERT INTO t VALUES (9, 5, 'xxx')")
    pair = (image(1, 1, "aaa"), image(1, 5, "aaa"))
    stage.topic.send([stage.topic.update(path, COLUMNS, pair, key=["id"])])
    assert len(conflicts(stage.apply())) == 1
    assert rows(stage) == [(1, 5, "aaa")]


def test_an_update_does_not_fall_upon_a_foreign_row(stage: Stage) -> None:
    """Of the rows updated in one statement one is gone, and a foreign row has its value in another unique key."""
    path = stage.create_table("v", "(id INT PRIMARY KEY, u INT UNIQUE, v INT)")
    columns = ["id", "u", "v"]
    stage.topic.send([stage.topic.add(path, columns, *[[number(n)] * 3 for n in range(1, 4)], key=["id"])])
    stage.apply()
    stage.execute("UPDATE v SET id = 9 WHERE id = 2")
    pairs = [([number(n), number(n), number(n)], [number(n), number(n), number(7)]) for n in range(1, 4)]
    stage.topic.send([stage.topic.update(path, columns, *pairs, key=["id"])])
    (line,) = conflicts(stage.apply())
    assert "key=id=2" in line
    assert stage.execute("SELECT * FROM v ORDER BY id") == [(1, 1, 7), (2, 2, 7), (3, 3, 7)]


def test_a_row_that_came_and_went_takes_a_foreign_one_with_it(stage: Stage) -> None:
    path = table(stage)
    stage.execute("INSERT INTO t VALUES (1, 10, 'foreign')")
    new = image(1, 1, "new")
    stage.topic.send(
        [stage.topic.add(path, COLUMNS, new, key=["id"]), stage.topic.delete(path, COLUMNS, new, key=["id"])]
    )
    assert len(conflicts(stage.apply())) == 1
    assert rows(stage) == []


def test_a_conflict_in_a_part_of_a_large_transaction_is_settled_in_that_part(stage: Stage) -> None:
    path = stage.create_table("large", "(id INT PRIMARY KEY, t MEDIUMTEXT)")
    stage.apply()
    stage.execute("INSERT INTO large VALUES (13, 'foreign')")
    content = "x" * (MOST_BYTES // 8)
    records = [stage.topic.add(path, ["id", "t"], [number(n), text(content)], key=["id"]) for n in range(20)]
    stage.topic.send(records, [stage.topic.delete(path, ["id", "t"], [number(0), text(content)], key=["id"])])
    (line,) = conflicts(stage.apply())
    assert "key=id=13" in line
    assert stage.execute("SELECT id, LENGTH(t) FROM large ORDER BY id") == [(n, len(content)) for n in range(1, 20)]


def test_a_conflict_behind_a_part_of_which_nothing_passes(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    name = "part_left_out"
    filters = {"exclude_tables": [f"{name}.out"]}
    stage = Stage.make(tmp_path, follower, kafka, name=name, filters=filters)
    path = stage.create_table("t", "(id INT PRIMARY KEY, t MEDIUMTEXT)")
    stage.apply()
    stage.execute("INSERT INTO t VALUES (7, 'foreign')")
    content, columns = "x" * (MOST_BYTES // 8), ["id", "t"]
    out = [stage.topic.add(f"{name}/out", columns, [number(n), text(content)], key=["id"]) for n in range(10)]
    wanted = [stage.topic.add(path, columns, [number(n), text(content)], key=["id"]) for n in range(4, 20)]
    stage.topic.send([stage.topic.add(path, columns, [number(1), text("before")], key=["id"])], [*out, *wanted])
    (line,) = conflicts(stage.apply())
    assert "key=id=7" in line
    assert [key for key, _ in stage.execute("SELECT id, t FROM t ORDER BY id")] == [1, *range(4, 20)]


def test_making_room_does_not_cascade(stage: Stage) -> None:
    path = table(stage)
    stage.execute(
        "CREATE TABLE child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
        "INSERT INTO t VALUES (1, 10, 'xxx')",
        "INSERT INTO child VALUES (7, 1)",
    )
    stage.topic.send([stage.topic.add(path, COLUMNS, image(1, 11, "yyy"), key=["id"])])
    stage.apply()
    assert rows(stage) == [(1, 11, "yyy")]
    assert stage.execute("SELECT * FROM child") == [(7, 1)]


def test_rows_that_refer_to_themselves_and_to_one_another(stage: Stage) -> None:
    """As a leader from 9.6 on logs their deletion: after SET NULL, or twice."""
    own = stage.create_table(
        "own", "(n INT, c INT UNIQUE, r INT, FOREIGN KEY (r) REFERENCES own (c) ON DELETE SET NULL)"
    )
    pair = stage.create_table(
        "pair", "(n INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES pair (n) ON DELETE CASCADE)"
    )
    row, left = ([number(1), number(1), r] for r in (number(1), "Null"))
    one, other = [number(1), number(2)], [number(2), number(1)]
    stage.topic.send(
        [
            stage.topic.add(own, ["n", "c", "r"], row, flags=0x12),
            stage.topic.add(pair, ["n", "r"], one, other, key=["n"], flags=0x12),
        ],
    )
    stage.apply()
    stage.topic.send(
        [
            stage.topic.update(own, ["n", "c", "r"], (row, left), flags=0x12),
            stage.topic.delete(own, ["n", "c", "r"], row, flags=0x10),
        ],
        [stage.topic.delete(pair, ["n", "r"], other, one, one, key=["n"], flags=0x12)],
    )
    assert "conflicts=0" in stage.apply()
    assert stage.execute("SELECT n FROM own UNION SELECT n FROM pair") == []


def test_a_missing_row_without_a_key_is_a_conflict_too(stage: Stage) -> None:
    path = stage.create_table("k", "(a INT)")
    stage.topic.send([stage.topic.update(path, ["a"], ([number(1)], [number(2)]))])
    assert len(conflicts(stage.apply())) == 1
    assert stage.execute("SELECT * FROM k") == [(2,)]


CHANGED = "(id INT PRIMARY KEY, n INT, d DOUBLE, t TEXT, j JSON, at TIMESTAMP(3) NULL ON UPDATE CURRENT_TIMESTAMP(3))"
FIELDS = ["id", "n", "d", "t", "j", "at"]


def wide(key: int, n: int | None, content: str) -> list[object]:
    value = "Null" if n is None else number(n)
    return [number(key), value, {"Double": n or 0.5}, text(content), {"Json": [n]}, "Null"]


FOREIGN = {
    "n = 77": "n",
    "n = NULL": "n",
    "d = 1.25": "d",
    "t = 'LONG'": "t",
    "j = NULL": "j",
    "at = NOW(3)": "at",
    "n = 0, t = 'long '": "n, t",
}


@pytest.mark.parametrize("operation", ["update", "delete"])
def test_rows_that_were_changed_are_conflicts(tmp_path: Path, follower: MySql, kafka: Kafka, operation: str) -> None:
    stage = Stage.make(tmp_path, follower, kafka, name=f"changed_before_{operation}")
    path = stage.create_table("t", CHANGED)
    keys = range(1, 20)
    old = [wide(key, None if key == 13 else key, "long") for key in keys]
    stage.topic.send([stage.topic.add(path, FIELDS, *old, key=["id"])])
    stage.apply()
    stage.execute(*(f"UPDATE t SET at = at, {change} WHERE id = {key}" for key, change in enumerate(FOREIGN, 3)))
    new = [wide(key, 10 + key, "new") for key in keys]
    stage.topic.send(
        [stage.topic.update(path, FIELDS, *zip(old, new, strict=True), key=["id"])]
        if operation == "update"
        else [stage.topic.delete(path, FIELDS, *old, key=["id"])]
    )
    found = conflicts(stage.apply())
    for line, (key, columns) in zip(found, enumerate(FOREIGN.values(), 3), strict=True):
        assert f"key=id={key}" in line
        assert f"the row has another {columns} than the leader's had" in line
    left = stage.execute("SELECT id, n, t, at FROM t ORDER BY id")
    assert left == ([(key, 10 + key, "new", None) for key in keys] if operation == "update" else [])


def test_a_column_of_the_followers_own_or_of_another_type_is_no_conflict(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY, d DECIMAL(10,1), s SET('', 'x'), own TEXT)")
    columns = ["id", "d", "s"]
    stage.apply()
    stage.execute("ALTER TABLE t MODIFY d DECIMAL(10,3)")
    old = [[number(key), {"Decimal": f"{key}.5"}, {"Set": 2}] for key in range(1, 9)]
    new = [[number(key), {"Decimal": f"{key}.7"}, {"Set": 2}] for key in range(1, 9)]
    stage.topic.send([stage.topic.add(path, columns, *old, key=["id"])])
    stage.apply()
    stage.execute("UPDATE t SET own = 'kept'", "UPDATE t SET s = '' WHERE id = 4")
    stage.topic.send([stage.topic.update(path, columns, *zip(old, new, strict=True), key=["id"])])
    stage.topic.send([stage.topic.update(path, columns, *zip(new, old, strict=True), key=["id"])])
    log = stage.apply()
    (line,) = conflicts(log)
    assert "key=id=4" in line
    assert "the row has another s than the leader's had" in line
    assert log.count("columns of another type than the leader's") == 1
    found = stage.execute("SELECT id, d, s + 0, own FROM t ORDER BY id")
    assert [(key, str(d), members, own) for key, d, members, own in found] == [
        (key, f"{key}.500", 2, "kept") for key in range(1, 9)
    ]


def test_members_of_a_large_set_are_compared(stage: Stage) -> None:
    members = ",".join(["''", *(f"'m{place}'" for place in range(1, 64))])
    path = stage.create_table("t", f"(id INT PRIMARY KEY, s SET({members}), n INT)")
    columns = ["id", "s", "n"]
    masks = [1, 1 << 50, (1 << 52) + 1, 1 << 63, (1 << 64) - 1]
    old = [[number(key), {"Set": mask}, number(1)] for key, mask in enumerate(masks)]
    new = [[number(key), {"Set": mask}, number(2)] for key, mask in enumerate(masks)]
    stage.topic.send([stage.topic.add(path, columns, *old, key=["id"])])
    stage.topic.send([stage.topic.update(path, columns, *zip(old, new, strict=True), key=["id"])])
    log = stage.apply()
    assert conflicts(log) == []
    assert "retrying row by row" not in log
    assert stage.execute("SELECT COUNT(*) FROM t WHERE n = 2") == [(5,)]


def test_a_changed_row_stops_or_is_passed_over(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    stage = Stage.make(tmp_path, follower, kafka, name="changed", consumer={"on_conflict": "stop"})
    path = table(stage, (1, 1, "aaa"), (2, 2, "bbb"))
    stage.execute("UPDATE t SET name = 'AAA' WHERE id = 1")
    pairs = [(image(1, 1, "aaa"), image(1, 1, "ccc")), (image(2, 2, "bbb"), image(2, 2, "ddd"))]
    stage.topic.send([stage.topic.update(path, COLUMNS, *pairs, key=["id"])])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert f"Update of id=1 in flv://{stage.name}/{path}: the row has another name than the leader's had" in line
    assert rows(stage) == [(1, 1, "AAA"), (2, 2, "bbb")]
    lenient = {"on_conflict": "stop", "before_images": "ignore"}
    write_profile(tmp_path, follower, kafka, name=stage.name, resource=stage.name, consumer=lenient)
    assert conflicts(stage.apply()) == []
    assert rows(stage) == [(1, 1, "ccc"), (2, 2, "ddd")]


def logged(stage: Stage, apply: Callable[[], object]) -> list[str]:
    """The kinds of rows events of ``t`` that the follower logs meanwhile."""
    with stage.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        file, offset = cursor.fetchone()[:2]
        apply()
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}")
        events = [(row[2], row[5]) for row in cursor.fetchall()]
    table = f"({stage.name}.t)"
    return [kind for (_, of), (kind, _) in itertools.pairwise(events) if of.endswith(table)]


def test_what_is_changed_there_and_back_at_once_is_logged(stage: Stage) -> None:
    """The audit knows the follower's rows by its log alone: of a copy it would miss this one."""
    path = table(stage, (1, 1, "aaa"))
    stage.topic.send(
        [stage.topic.update(path, COLUMNS, (image(1, 1, "aaa"), image(1, 1, "bbb")), key=["id"])],
        [stage.topic.update(path, COLUMNS, (image(1, 1, "bbb"), image(1, 1, "aaa")), key=["id"])],
    )
    assert logged(stage, stage.apply) == ["Delete_rows", "Write_rows"]


def test_a_conflict_with_a_row_that_is_the_leaders_already_is_logged(stage: Stage) -> None:
    path = table(stage, (1, 1, "aaa"))
    stage.execute("UPDATE t SET name = 'bbb'")
    stage.topic.send([stage.topic.update(path, COLUMNS, (image(1, 1, "aaa"), image(1, 1, "bbb")), key=["id"])])
    assert logged(stage, lambda: conflicts(stage.apply())) == ["Delete_rows", "Write_rows"]
    assert rows(stage) == [(1, 1, "bbb")]


@pytest.mark.parametrize("operation", ["add", "update", "delete"])
def test_stop_means_stop(tmp_path: Path, follower: MySql, kafka: Kafka, operation: str) -> None:
    stage = Stage.make(tmp_path, follower, kafka, name=f"stop_{operation}", consumer={"on_conflict": "stop"})
    path = table(stage, (1, 1, "aaa"))
    stage.execute("UPDATE t SET id = 5")
    good = stage.topic.add(path, COLUMNS, image(6, 6, "fff"), key=["id"])
    bad = {
        "add": lambda: stage.topic.add(path, COLUMNS, image(5, 9, "eee"), key=["id"]),
        "update": lambda: stage.topic.update(path, COLUMNS, (image(1, 1, "aaa"), image(1, 1, "b")), key=["id"]),
        "delete": lambda: stage.topic.delete(path, COLUMNS, image(1, 1, "aaa"), key=["id"]),
    }[operation]()
    stage.topic.send([good], [bad])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    key = 5 if operation == "add" else 1
    assert f"conflict: {operation.capitalize()} of id={key} in flv://{stage.name}/{path}" in line
    assert "at sequence 4, leader position binlog.000003:1004" in line
    # The good transaction was in the same batch: a batch is applied whole or not at all.
    assert rows(stage) == [(5, 1, "aaa")]
    write_profile(tmp_path, follower, kafka, name=stage.name, resource=stage.name, consumer={"on_conflict": "converge"})
    stage.apply()
    assert (6, 6, "fff") in rows(stage)


@pytest.mark.parametrize(
    ("name", "definition", "message"),
    [
        ("no_column", "(id INT PRIMARY KEY)", "Unknown column 'u'"),
        ("too_long", "(id INT PRIMARY KEY, u INT, name CHAR(1))", "Data too long"),
    ],
)
def test_a_row_that_the_follower_cannot_hold_stops(
    tmp_path: Path, follower: MySql, kafka: Kafka, name: str, definition: str, message: str
) -> None:
    stage = Stage.make(tmp_path, follower, kafka, name=name)
    path = stage.create_table("t", definition)
    stage.topic.send([stage.topic.add(path, COLUMNS, image(1, 1, "long"), key=["id"])])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert f"the follower refuses a row of flv://{stage.name}/{path}" in line
    assert message in line
    assert "tried: INSERT INTO" in line
    assert "sequence 2, leader position binlog.000003:1002" in line
    stage.execute("DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, u INT, name VARCHAR(20))")
    stage.apply()
    assert rows(stage) == [(1, 1, "long")]


def test_all_tables_without_transactions_are_named_at_once(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY, u INT, name VARCHAR(9)) ENGINE=MyISAM")
    for name, engine in (("s", "MEMORY"), ("u", "ARCHIVE"), ("v", "InnoDB")):
        stage.create_table(name, f"(id INT) ENGINE={engine}")
    stage.topic.send([stage.topic.add(path, COLUMNS, image(1, 1, "a"), key=["id"])])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert "the follower's table is kept by MyISAM, which has no transactions" in line
    assert rows(stage) == []
    statements = line.partition("on the follower, for all there are: ")[2].split("; ")
    assert [statement.split()[2] for statement in statements] == [f"`{stage.name}`.`{name}`" for name in "tsu"]
    stage.execute(*statements)
    stage.apply()
    assert rows(stage) == [(1, 1, "a")]


def test_a_conflict_while_the_next_batch_is_on_its_way(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """The next batch takes several packets of more than one table, which are made between packet and answer."""
    stage = Stage.make(tmp_path, follower, kafka, name="next_batch", consumer={"batch_rows": 1})
    paths = [stage.create_table(name, "(id INT PRIMARY KEY, t LONGBLOB)") for name in "xab"]
    columns, key = ["id", "t"], ["id"]

    def change(path: str, n: int, new: bytes) -> dict[str, object]:
        return stage.topic.update(path, columns, ([number(n), blob(b"old")], [number(n), blob(new)]), key=key)

    images = [[number(n), blob(b"old")] for n in range(10)]
    stage.topic.send([stage.topic.add(path, columns, *images, key=key) for path in paths])
    stage.apply()
    stage.execute("UPDATE x SET t = 'foreign' WHERE id = 2")
    # In SQL a blob takes twice its size, in JSON four thirds: one batch, and more than a packet.
    large = b"z" * (MOST_BYTES * 2 // 3 // 6)
    x, a, b = paths
    stage.topic.send([change(path, 3, new=b"asked for") for path in paths])
    stage.topic.send([change(x, 2, new=b"leader's")])
    stage.topic.send([*(change(a, n, new=large) for n in range(4, 10)), change(b, 4, new=b"last")])
    (line,) = conflicts(stage.apply())
    assert "key=id=2" in line
    assert stage.execute("SELECT t FROM x WHERE id = 2") == [(b"leader's",)]
    assert stage.execute("SELECT COUNT(*) FROM a WHERE LENGTH(t) > 1000") == [(6,)]
    assert stage.execute("SELECT t FROM b WHERE id = 4") == [(b"last",)]


def blob(content: bytes) -> dict[str, str]:
    return {"Blob": base64.b64encode(content).decode()}


def test_a_large_value_is_compared_in_a_small_statement(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    """What stores a row takes its size once; looking whether it was as it should be must not take more."""
    server = mysql_server("--max-allowed-packet=1M", server_id=9)
    stage = Stage.make(tmp_path, server, kafka, name="large_value")
    path = stage.create_table("t", "(id INT PRIMARY KEY, t LONGTEXT)")
    old, new = "x" * 400_000, "y" * 400_000
    stage.topic.send([stage.topic.add(path, ["id", "t"], [number(n), text(old)], key=["id"]) for n in (1, 2)])
    stage.apply()
    stage.execute("UPDATE t SET t = 'foreign' WHERE id = 2")
    pairs = [([number(n), text(old)], [number(n), text(new)]) for n in (1, 2)]
    stage.topic.send([stage.topic.update(path, ["id", "t"], pair, key=["id"]) for pair in pairs])
    (line,) = conflicts(stage.apply())
    assert "key=id=2" in line
    assert stage.execute("SELECT COUNT(*) FROM t WHERE t = REPEAT('y', 400000)") == [(2,)]


def test_what_foreign_keys_have_logged_is_no_conflict_row_by_row(stage: Stage) -> None:
    """Nor is a row refused whose parent is still to be copied: the leader has checked that."""
    path = table(stage, (1, 1, "aaa"))
    parent = stage.create_table("parent", "(id INT PRIMARY KEY)")
    child = stage.create_table(
        "child", "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"
    )
    one, its = [number(1)], [number(10), number(1)]
    add = stage.topic.add(child, ["id", "p"], its, key=["id"], flags=18)
    stage.topic.send([stage.topic.add(parent, ["id"], one, key=["id"], flags=16), add])
    stage.apply()
    stage.execute("DELETE FROM t")
    update = stage.topic.update(path, COLUMNS, (image(1, 1, "aaa"), image(1, 2, "bbb")), key=["id"], flags=16)
    gone = [
        stage.topic.delete(parent, ["id"], one, key=["id"], flags=16),
        stage.topic.delete(child, ["id", "p"], its, key=["id"], flags=18),
    ]
    later = stage.topic.add(child, ["id", "p"], [number(20), number(2)], key=["id"], flags=16)
    stage.topic.send([update, *gone, later])
    (line,) = conflicts(stage.apply())
    assert path in line
    assert stage.execute("SELECT * FROM child") == [(20, 2)]
