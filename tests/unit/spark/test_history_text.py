"""A history that was saved is the same one when it is read."""

import json

from cdc.spark.ddl.lineage import Act
from cdc.spark.frames.schema_history import NOTHING, History, Statement, Told, from_tree, to_tree, upto, with_more

CREATE = "CREATE TABLE t …"
ACTS = (Act(3, 0, "CreateTable", "flv://l/d/t", text=CREATE), Act(7, 1, "RenameTable", "flv://l/d/t", to="x"))
STATEMENTS = {
    3: Statement(CREATE, frozenset({"ANSI_QUOTES", ""}), "utf8mb4", True),
    7: Statement("", frozenset(), "", False, False),
}
COLUMNS = (("id", "int"), ("é", "text character set utf8mb4"))
HISTORY = History(
    ACTS, STATEMENTS, (Told(("d", "t"), 4, COLUMNS, ("id",)), Told(("d", "u"), 9, COLUMNS[:1], None)), True
)


def test_it_stays_the_same() -> None:
    saved = json.loads(json.dumps(to_tree(HISTORY)))
    read = from_tree(saved)
    assert read == HISTORY
    assert read.acts[0].text == HISTORY.acts[0].text  # which are not compared otherwise
    assert from_tree(json.loads(json.dumps(to_tree(NOTHING)))) == NOTHING


def test_two_parts_are_the_whole() -> None:
    first = upto(HISTORY, 4)
    assert ([act.sequence for act in first.acts], list(first.statements), len(first.told)) == ([3], [3], 1)
    rest = History(HISTORY.acts[1:], {7: HISTORY.statements[7]}, HISTORY.told[1:], False)
    assert with_more(first, rest) == HISTORY
