"""docs/types.md has the table of all types that the code makes of all_types.sql.

`python -m tests.unit.project.test_types_page` prints the table.
"""

from pathlib import Path

from cdc.producer.copy.row_text import _TYPES as COPIED
from cdc.producer.flavor.mariadb_statements import OWN_TYPES
from tests.checks.type_table import kinds, table

PAGE = Path(__file__).parents[3] / "docs/types.md"
OTHER_NAME = {"geomcollection": "geometrycollection"}


def test_the_page_has_the_table_that_the_code_makes() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("|")] == table()


def test_every_type_that_can_be_copied_has_a_row() -> None:
    there = {kind.real_name for kind in kinds()}
    assert {OTHER_NAME.get(name, name) for name in COPIED} - OWN_TYPES.keys() == there


def test_the_page_says_what_becomes_of_mariadbs_own_types() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, text in OWN_TYPES.items():
        assert f"- **`{name.upper()}`** → `{text.upper()}`" in page


if __name__ == "__main__":
    print("\n".join(table()))
