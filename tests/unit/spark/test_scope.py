"""Which of the leader's tables and statements are for a follower, by the filters of its consumer."""

from cdc.config.filters import Filters
from cdc.spark.ddl.lineage import Act
from cdc.spark.ddl.scope import Scope

FILTERED = Scope(Filters(exclude_tables=("db.out",)))


def act(action: str, path: str, sequence: int = 7) -> Act:
    return Act(sequence, 0, action, f"flv://srv/{path}", text=f"{action} …")


def test_tables_and_statements_go_by_the_filters() -> None:
    assert (FILTERED.wants_table("db", "in"), FILTERED.wants_table("db", "out")) == (True, False)
    assert (FILTERED.wants(act("AlterTable", "db/in")), FILTERED.wants(act("AlterTable", "db/out"))) == (True, False)
    # Routines and databases go by the database.
    assert FILTERED.wants(act("CreateProcedure", "db/out"))
    assert FILTERED.wants(act("CreateDatabase", "db"))
    assert not Scope(Filters(include_dbs=("db",))).wants(act("CreateDatabase", "other"))


def test_the_consumers_own_database_is_never_wanted() -> None:
    for scope in (Scope(), FILTERED):
        assert not scope.wants(act("CreateTable", "cdc/ledger"))
        assert not scope.wants_table("cdc", "ledger")


def test_statements_left_out_show_filters_that_were_not_given() -> None:
    left_out = [act("CreateTable", "db/out")]
    (reason,) = Scope().contradictions(left_out, {7: "not applied"})
    assert "sequence 7 among them (CreateTable …); name the profile of cdc-consumer with --consumer" in reason
    assert list(FILTERED.contradictions(left_out, {7: "not applied"})) == []
    assert list(Scope().contradictions(left_out, {7: "skipped"})) == []
    assert list(Scope().contradictions([act("CreateTrigger", "db/t")], {7: "not applied"})) == []


def test_filters_that_were_changed() -> None:
    (reason,) = FILTERED.contradictions([act("CreateTable", "db/in")], {7: "not applied"})
    assert "they were changed" in reason


def test_tables_without_records_on_the_follower() -> None:
    assert Scope().silent([]) is None
    assert FILTERED.silent([("db", "in")]) is None
    assert "has no records of db.in: if the filters of cdc-consumer leave them out" in str(
        Scope().silent([("db", "in")])
    )
