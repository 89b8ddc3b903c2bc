"""Debezium's topics have no names of records' topics: no profile that is accepted gives a topic to both."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cdc.config.debezium import Debezium, require_other_topics
from cdc.config.topic_names import PER_TABLE, SINGLE, Topics, debezium_topic, is_debezium_topic
from cdc.errors import UserError

_PARTS = st.lists(st.sampled_from(["shop", "a", "b", ".", "_", "-"]), min_size=1, max_size=5).map("".join)
_NAMES = st.lists(st.sampled_from(["a", "b", "_", ".", "shop", "mysql_binlog_events"]), min_size=1, max_size=3).map(
    "".join
)


@given(_PARTS, _PARTS, st.sampled_from([SINGLE, PER_TABLE]), st.just("") | _PARTS, st.tuples(*[_NAMES] * 4))
def test_no_topic_has_records_and_messages(
    prefix: str, topic: str, layout: str, own: str, names: tuple[str, str, str, str]
) -> None:
    modes = Debezium(provide_transaction_metadata=True, include_schema_changes=True)
    try:
        topics = Topics(topic, layout=layout, prefix=own)
        require_other_topics(prefix, topics, more=modes.topics_beside(prefix))
    except UserError:
        assume(False)
    records = {topics.topic, topics.commits, topics.copies, topics.events, topics.of_table(*names[:2])}
    assert not records & {debezium_topic(prefix, *names[2:]), *modes.topics_beside(prefix)}


def test_a_topic_of_messages_is_known_by_the_name_of_its_leader() -> None:
    """Recovery compares what readers see in these topics with the entries of the commit log, and in no others."""
    modes = Debezium(provide_transaction_metadata=True, include_schema_changes=True)
    names = [debezium_topic("shop", "a", "b"), *modes.topics_beside("shop")]
    assert [is_debezium_topic("shop", name) for name in names] == [True] * 3
    assert not any(is_debezium_topic("shop", name) for name in ("shop2", "shop2.a.b", "shop_a.b", "eu.shop.a.b"))
    assert not any(is_debezium_topic("", name) for name in names)


@pytest.mark.parametrize(
    ("prefix", "topics", "key"),
    [
        ("shop", Topics("shop.a.b"), "kafka.topic"),
        ("shop", Topics("shop_a_b"), "kafka.topic"),
        ("shop", Topics("shop.transaction"), "kafka.topic"),
        ("shop", Topics("shop_transaction"), "kafka.topic"),
        ("shop", Topics("shop.changes"), "kafka.topic"),  # its commit log is shop.changes.commits
        ("shop", Topics("x", layout=PER_TABLE, prefix="shop."), "kafka.prefix"),
        ("shop", Topics("x", layout=PER_TABLE, prefix="shop_"), "kafka.prefix"),
    ],
)
def test_what_might_be_one_topic_is_refused_by_its_keys(prefix: str, topics: Topics, key: str) -> None:
    beside = Debezium(provide_transaction_metadata=True).topics_beside(prefix)
    with pytest.raises(UserError, match="might have the name of a topic of records") as refused:
        require_other_topics(prefix, topics, more=beside)
    assert refused.value.where == f"profile keys debezium.topic_prefix and {key}"


@pytest.mark.parametrize(
    ("prefix", "topics", "key"),
    [
        ("shop", Topics("shop"), "kafka.topic"),
        ("shop.commits", Topics("shop"), "kafka.topic"),
        ("my_shop", Topics("x", layout=PER_TABLE), "kafka.prefix"),  # my.shop
        ("a.mysql_binlog_events", Topics("x", prefix="a."), "kafka.prefix"),
    ],
)
def test_the_topic_of_schema_changes_has_the_name_of_the_leader(prefix: str, topics: Topics, key: str) -> None:
    require_other_topics(prefix, topics)
    more = Debezium(include_schema_changes=True).topics_beside(prefix)
    with pytest.raises(UserError, match="might have the name of a topic of records") as refused:
        require_other_topics(prefix, topics, more=more)
    assert refused.value.where == f"profile keys debezium.topic_prefix and {key}"


@pytest.mark.parametrize(
    "topics",
    [
        Topics("shop"),
        Topics("shopping.changes.of.all"),
        Topics("shop", layout=PER_TABLE),
        Topics("shop", layout=PER_TABLE, prefix="shop-"),
    ],
)
def test_usual_names_are_accepted(topics: Topics) -> None:
    beside = Debezium(provide_transaction_metadata=True).topics_beside("shop")
    require_other_topics("shop", topics, more=beside)
