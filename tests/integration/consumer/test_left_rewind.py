"""A follower that an earlier version left in a rewind is refused, and the message names a way out that works."""

import re

import pytest

from tests.harness.programs import refused, run
from tests.harness.topic import Body, Stage, number, text

pytestmark = pytest.mark.integration

COLUMNS = ["id", "n"]


def image(id_: int, value: str) -> list[Body]:
    return [number(id_), text(value)]


def test_a_rewind_that_has_not_ended(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY, n VARCHAR(9))")
    add, update = stage.topic.add, stage.topic.update
    stage.topic.send(
        [add(path, COLUMNS, image(1, "a"), image(2, "a"), key=["id"])],  # 2
        [update(path, COLUMNS, (image(1, "a"), image(1, "b")), key=["id"])],  # 3
        [update(path, COLUMNS, (image(2, "a"), image(2, "b")), key=["id"])],  # 4
    )
    stage.apply()
    place = f"WHERE resource = '{stage.name}'"
    ((offsets,),) = stage.execute(f"SELECT offsets FROM cdc.checkpoint {place}")
    ((partition, offset),) = re.findall(r'"(\d+)": (\d+)', offsets)
    # It went back to record 1, and has applied 2 and 3 again. Row 2 is that of an earlier moment.
    stage.execute(
        "CREATE TABLE IF NOT EXISTS cdc.rewinds (resource VARCHAR(255) NOT NULL PRIMARY KEY, after_sequence BIGINT, "
        "upto BIGINT NOT NULL, filters LONGTEXT, at DATETIME(6))",
        f"INSERT INTO cdc.rewinds VALUES ('{stage.name}', 1, 4, '{{}}', NOW(6)), ('another', 1, 9, '{{}}', NOW(6))",
        f"""UPDATE cdc.checkpoint SET sequence = 3, leader_file = NULL, offsets = '{{"{partition}": {int(offset) - 1}}}'
        {place}""",
        "UPDATE t SET n = 'a' WHERE id = 2",
        "COMMIT",
    )
    line = refused("cdc-consumer", stage.profile, "--until-current")
    assert "(--rewind) from sequence 4, and has applied records again up to 3 only: the follower's rows belong" in line
    assert "--copy" in line
    assert line == refused("cdc-consumer", stage.profile, "--status")
    assert (stage.checkpoint(), stage.execute("SELECT n FROM t ORDER BY id")) == (3, [("b",), ("a",)])

    ways_out = re.search(r"on the follower: (UPDATE .*); (DELETE .*)$", line)
    assert ways_out is not None, line
    stage.execute(*ways_out.groups(), "COMMIT")
    stage.topic.send(stage.topic.chunk(path, COLUMNS, image(1, "b"), image(2, "b"), key=["id"]))  # 5
    stage.apply()
    assert (stage.checkpoint(), stage.execute("SELECT n FROM t ORDER BY id")) == (5, [("b",), ("b",)])
    # A row that was left behind when the end was passed means nothing.
    stage.execute(f"INSERT INTO cdc.rewinds VALUES ('{stage.name}', 1, 5, '{{}}', NOW(6))", "COMMIT")
    stage.apply()


def test_the_option_is_no_more(stage: Stage) -> None:
    line = refused("cdc-consumer", stage.profile, "--rewind", "3")
    assert "--rewind was removed" in line and "cdc-producer PROFILE --copy" in line
    assert "--rewind" not in run("cdc-consumer", "--help").stdout
