"""What the follower logs where others change its row, or it changes there and back: the audit knows no more of it."""

import itertools
from collections.abc import Callable

import pytest

from tests.checks.binlog import position
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


def logged(stage: Stage, apply: Callable[[], object]) -> list[str]:
    """The kinds of rows events of ``t`` that the follower logs meanwhile."""
    with stage.follower.root() as connection, connection.cursor() as cursor:
        file, offset = position(stage.follower)
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
