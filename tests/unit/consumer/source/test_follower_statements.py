"""Statements as the follower executes them; the record itself keeps the leader's."""

from typing import Any

import pytest

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable
from cdc.consumer.source.follower_statements import FollowerStatements, with_same_keys
from cdc.consumer.source.renaming import Renaming
from cdc.model.position import Position
from cdc.model.record import Record, Uri


def of_leader(text: str, exact: bytes | None = None, **context: Any) -> Record:
    """A record of a statement on the leader's table d.t."""
    return Record(
        Uri("r", "d"), 7, Position("binlog.000001", 4), "id", 0, True, 0, "Query", text, exact=exact,
        context={"database": "d", **context}, affects=({"action": "CreateTable", "uri": "flv://r/d/t"},),
    )  # fmt: skip


def executed(text: str, *, renames: dict[str, str] | None = None, engine: str = "keep", **context: Any) -> str:
    """What the follower executes of a statement on the leader's table d.t."""
    renaming = Renaming(Renames(renames or {}), replicated=lambda _: True)
    return FollowerStatements(renaming, engine=engine).of(of_leader(text, **context)).query


@pytest.mark.parametrize("space", ["innodb_file_per_table", "`Innodb_System`"])
def test_what_every_server_has_is_kept(space: str) -> None:
    assert executed(f"CREATE TABLE t (i INT) TABLESPACE {space}").endswith(space)


def test_another_tablespace_becomes_a_file_of_the_table() -> None:
    own = "innodb_file_per_table"
    assert executed("ALTER TABLE t TABLESPACE=a, ADD i INT") == f"ALTER TABLE t TABLESPACE={own}, ADD i INT"
    assert (
        executed('CREATE TABLE d.t (i INT) TABLESPACE "a"', sql_mode="ANSI_QUOTES", renames={"d": "e"})
        == f"CREATE TABLE `e`.t (i INT) TABLESPACE {own}"
    )


def test_exact_bytes_are_changed_with_their_text() -> None:
    # The second byte of the first letter is a backslash, and two bytes are one character.
    text, options = "CREATE TABLE t (i INT COMMENT '表') ", "ENGINE={} TABLESPACE {} COMMENT 'ж'"
    charset = {"charset": "cp932", "collation": "cp932_japanese_ci"}
    exact = (text + options.format("MyISAM", "ts")).encode("cp932")
    renaming = Renaming(Renames({}), replicated=lambda _: True)
    record = of_leader(text + options.format("MyISAM", "ts"), exact, **charset)
    changed = FollowerStatements(renaming, engine="InnoDB").of(record)
    assert changed.query == text + options.format("InnoDB", "innodb_file_per_table")
    assert changed.exact == changed.query.encode("cp932")


@pytest.mark.parametrize(
    ("text", "as_innodb"),
    [
        ("CREATE TABLE t (i INT) ENGINE=MyISAM", "CREATE TABLE t (i INT) ENGINE=InnoDB"),
        ("CREATE TABLE t (i INT) ENGINE 'memory' COMMENT='x'", "CREATE TABLE t (i INT) ENGINE InnoDB COMMENT='x'"),
        ("ALTER TABLE t ADD i INT, ENGINE = `Heap`", "ALTER TABLE t ADD i INT, ENGINE = InnoDB"),
        ("ALTER TABLE t ENGINE=ARCHIVE", "ALTER TABLE t ENGINE=InnoDB"),
        ("CREATE TABLE t (i INT NOT NULL) ENGINE=csv", "CREATE TABLE t (i INT NOT NULL) ENGINE=InnoDB"),
    ],
)
def test_tables_without_transactions_become_innodb(text: str, as_innodb: str) -> None:
    assert executed(text, engine="InnoDB") == as_innodb
    assert executed(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (i INT) ENGINE=InnoDB",
        "CREATE TABLE t (i INT) ENGINE=NDB SECONDARY_ENGINE=MyISAM",
        "CREATE TABLE t (engine INT) COMMENT='ENGINE=MyISAM'",
        "CREATE TABLE t (i INT REFERENCES p (i)) ENGINE=InnoDB",
        "CREATE TABLE t (i INT, FOREIGN KEY (i) REFERENCES p (i))",
        "ALTER TABLE t ENGINE=InnoDB, ADD FOREIGN KEY (i) REFERENCES p (i)",
        "ALTER TABLE t COMMENT 'REFERENCES'",
    ],
)
def test_what_is_innodb_on_the_leader_is_kept(text: str) -> None:
    assert executed(text, engine="InnoDB") == text


def test_foreign_keys_are_added_where_the_log_shows_that_the_table_is_innodb() -> None:
    record = of_leader("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (i) REFERENCES p (i)", engine="InnoDB")
    assert FollowerStatements(Renaming(Renames({}), replicated=lambda _: True), engine="InnoDB").of(record) == record


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE TABLE t (i INT) ENGINE=MERGE UNION=(a, b) INSERT_METHOD=LAST", "MERGE .* are those of other tables"),
        ("CREATE TABLE t (i INT) ENGINE=mrg_MyISAM", "mrg_MyISAM .* are those of other tables"),
        ("ALTER TABLE t ENGINE='FEDERATED'", "FEDERATED .* on another server"),
        ("CREATE TABLE t (i INT) ENGINE=BLACKHOLE", "BLACKHOLE .* the leader keeps none"),
        ("CREATE TABLE t (i INT REFERENCES p (i)) ENGINE=MyISAM", "enforce a foreign key"),
        ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (i) REFERENCES p (i)", "enforce a foreign key"),
        ("ALTER TABLE t ENGINE=MyISAM, ADD i INT REFERENCES p (i)", "enforce a foreign key"),
    ],
)
def test_what_would_be_another_table_as_innodb_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unapplicable, match=why):
        executed(text, engine="InnoDB")
    assert executed(text) == text


@pytest.mark.parametrize(
    ("mark", "leader", "version", "kept"),
    [
        ({"column_references": False}, "9.7.4", 90704, False),
        ({"column_references": True}, "8.0.45", 90704, True),
        ({"column_references": False}, "9.7.4", 80045, True),
        ({}, "8.4.3", 90704, False),
        ({}, "9.7.4", 90704, True),
        ({}, "", 90704, True),
        ({}, "", 80045, True),
    ],
)
def test_a_column_has_the_foreign_key_that_it_has_on_the_leader(
    mark: dict[str, bool], leader: str, version: int, kept: bool
) -> None:
    record = of_leader("ALTER TABLE t ADD p INT REFERENCES p (id) ON DELETE CASCADE FIRST", **mark)
    changed = with_same_keys(record, version=version, leader=lambda: leader)
    assert changed.query == (record.query if kept else "ALTER TABLE t ADD p INT  FIRST")


@pytest.mark.parametrize("mark", [{"column_references": True}, {}])
def test_a_foreign_key_that_the_follower_would_ignore_is_refused(mark: dict[str, bool]) -> None:
    record = of_leader("CREATE TABLE t (p INT REFERENCES p (id))", **mark)
    with pytest.raises(Unapplicable, match=r"MySQL 8\.0\.45 ignores a foreign key in the definition of a column"):
        with_same_keys(record, version=80045, leader=lambda: "9.7.4")
    assert with_same_keys(of_leader("ALTER TABLE t ADD p INT", **mark), version=80045, leader=str).query


@pytest.mark.parametrize(
    "text", ["CREATE TABLE t (p INT, FOREIGN KEY (p) REFERENCES p (id))", "ALTER TABLE t ADD p INT REFERENCES p (id)"]
)
def test_foreign_keys_that_the_leaders_engine_ignores_are_refused(text: str) -> None:
    assert executed(text) == executed(text, engine="keep") == text
    with pytest.raises(Unapplicable, match="would enforce a foreign key that the leader's may ignore"):
        FollowerStatements(Renaming(Renames({}), replicated=lambda _: True), engine="keep").of(
            of_leader(text, None, engine="other")
        )
