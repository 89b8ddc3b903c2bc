"""The audit knows each table that the consumer creates for itself: another one would be a foreign write."""

import ast
from pathlib import Path

from cdc.consumer import state
from cdc.spark.streams import transactions


def test_each_table_of_the_consumer_is_known() -> None:
    created = {
        call.args[0].value
        for path in Path(state.__path__[0]).glob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "OwnTable"
        if isinstance(call.args[0], ast.Constant)
    }
    assert created == set(transactions._TABLES.split("|"))
