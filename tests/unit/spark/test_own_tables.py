"""The audit takes none of the tables that the consumer makes for itself for another client's."""

import re
from pathlib import Path

from cdc.spark.streams import transactions

STATE = Path(__file__).parents[3] / "cdc/consumer/state"


def test_the_audit_knows_each_table_of_the_consumer() -> None:
    made = {name for path in STATE.glob("*.py") for name in re.findall(r'OwnTable\(\s*"(\w+)"', path.read_text())}
    assert "checkpoint" in made
    assert made == set(transactions._TABLES.split("|"))
