"""Topics' names: legal, told apart, and the same ones always."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc.config.topic_names import PER_TABLE, Topics
from cdc.errors import UserError

# MySQL's identifiers: up to 64 characters of the basic plane.
NAMES = st.text(
    st.characters(min_codepoint=1, max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1, max_size=64
)
CLOSE = st.text("aA_-.é0", min_size=1, max_size=6)
TABLES = st.tuples(NAMES, NAMES) | st.tuples(CLOSE, CLOSE)
LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}")


def per_table(**changes: object) -> Topics:
    return Topics(**{"topic": "shop", "layout": PER_TABLE} | changes)  # type: ignore[arg-type]


@given(TABLES, TABLES)
@example(("a", "b_c"), ("a_b", "c"))
@example(("a", "b.c"), ("a", "b_c"))
@example(("a_b", "c"), ("a", "b_c-" + per_table().of_table("a_b", "c").rpartition("-")[2]))
@example(("x" * 64, "é" * 64), ("x" * 64, "è" * 64))
def test_different_tables_have_different_topics(one: tuple[str, str], other: tuple[str, str]) -> None:
    mine, theirs = per_table().of_table(*one), per_table().of_table(*other)
    assert (mine.replace(".", "_") == theirs.replace(".", "_")) == (one == other)


@given(TABLES, st.sampled_from(["", "eu.", "x" * 100]))
def test_every_name_is_legal_and_no_other_topic_of_the_leader(table: tuple[str, str], prefix: str) -> None:
    names = per_table(prefix=prefix)
    name = names.of_table(*table)
    assert LEGAL.fullmatch(name)
    assert name not in (".", "..")
    assert name.startswith(prefix)
    assert name.replace(".", "_") not in (names.events.replace(".", "_"), names.commits.replace(".", "_"))


@pytest.mark.parametrize(
    ("database", "table", "topic"),
    [
        ("flvDb", "pet", "flvDb_pet"),
        ("shop-eu", "order_items", "shop-eu_order_items"),
        ("my_shop", "orders", "my_shop_orders-e2bf39f5c74c"),
        ("shop", "commits", "shop_commits-509ddacd52ad"),
        ("mysql", "binlog_events", "mysql_binlog_events-63431ed9455c"),
        ("d", "a.b", "d_a-b-1e2a6dd56cb8"),
    ],
)
def test_the_rule_is_for_ever(database: str, table: str, topic: str) -> None:
    """These names are in the clusters of users: a change would split their tables' topics."""
    assert per_table().of_table(database, table) == topic


def test_only_the_listed_tables_have_a_topic_of_their_own() -> None:
    names = per_table(tables=("flvDb.*", "*.audit"))
    assert names.of_table("flvDb", "pet") == "flvDb_pet"
    assert names.of_table("other", "audit") == "other_audit"
    assert names.of_table("other", "pet") == "mysql_binlog_events"


def test_a_statement_goes_where_its_only_table_is() -> None:
    assert per_table().of_statement({("a", "b")}) == "a_b"
    assert per_table().of_statement({("a", "b"), ("a", "c")}) == "mysql_binlog_events"
    assert per_table(prefix="eu-").of_statement(set()) == "eu-mysql_binlog_events"
    assert Topics("t").of_statement(set()) == Topics("t").of_table("a", "b") == "t"


@pytest.mark.parametrize(
    "names", [{"topic": "a b"}, {"topic": ".."}, {"topic": "x" * 242}, {"prefix": "é"}, {"prefix": "x" * 101}]
)
def test_names_that_kafka_forbids_are_refused(names: dict[str, str]) -> None:
    with pytest.raises(UserError, match="name"):
        per_table(**names)
