"""The GTIDs of statements on a follower."""

from cdc.model.gtid import StatementSequences, former_gtid, statement_gtid


def test_gtids_are_stable_because_followers_remember_them() -> None:
    assert former_gtid("mysql-srv1", 0) == "1375f078-79f6-57d5-964f-be06880cf443:1"
    assert statement_gtid("mysql-srv1", 1) == "43bb4b89-d73a-5353-b759-2a17c4c4b887:1"


def test_the_way_back_to_the_sequence() -> None:
    numbered = statement_gtid("srv", 3)
    sequences = StatementSequences("srv", {numbered: 70})
    assert sequences.of(numbered) == 70
    assert sequences.of(former_gtid("srv", 8)) == 8
    assert sequences.of(statement_gtid("srv", 71)) is None
    assert sequences.of(former_gtid("other", 8)) is None
    assert sequences.of("binlog.000001:4") is None
