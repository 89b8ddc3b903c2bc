"""What counts as left out by the leader's producer: what its filters leave out, and no record of its names."""

from cdc.config.filters import Filters
from cdc.spark.ddl.accepted_drift import first_entry
from cdc.spark.ddl.definitions import EMPTIED, SchemaDrift
from cdc.spark.ddl.scope import NOT_REPLICATED, LeftOut

FILTERS = Filters(exclude_tables=("shop.x", "shop.[[]x]", "reports.*"))


def test_the_very_object_is_left_out_and_no_other() -> None:
    left_out = LeftOut.of(FILTERS, [("reports", "old")], [])
    assert left_out.has("reports", "new")
    assert not left_out.has("reports", "old")
    assert not left_out.has("reports", None)
    table = SchemaDrift("Table", "shop", "x", "schema drift", "")
    procedure, other = SchemaDrift("Procedure", "shop", "x", "schema drift", ""), ("shop", "y")
    entries = left_out.entries([("shop", "x"), other, ("reports", "[a`]")], [table, procedure])
    assert {each.number for each in entries} == {NOT_REPLICATED}
    assert [first_entry(each, entries) for each in (table, procedure)] == [NOT_REPLICATED, None]
    # A procedure's entry accepts no rows of a table that has its name; one of a table that was emptied does.
    emptied = SchemaDrift("Table", "shop", "x", EMPTIED, "")
    assert first_entry(emptied, left_out.entries([], [emptied])) == NOT_REPLICATED
    assert first_entry(emptied, left_out.entries([], [table])) is None
    of_rows = [each for each in entries if each.what == ("rows",)]
    for name, count in ((("shop", "x"), 1), (other, 0), (("reports", "[a`]"), 1), (("reports", "a"), 0)):
        assert sum(each.names(*name) for each in of_rows) == count
