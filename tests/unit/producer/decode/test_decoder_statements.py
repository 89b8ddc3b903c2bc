"""Statements of a leader's binlog become changes, ends of transactions, or refusals."""

import struct
from typing import Any

import pytest

from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.decode.changes import (
    Change,
    Commit,
    Statement,
)
from cdc.sql.effects import ANY_DATABASE, Effect
from tests.generators.binlog_events import FILE, NO_ZEROS_AND_TRUNCATED, Log, opened
from tests.harness.decoding import Leader, begin, commit, decoded, kinds, plain, refusal


def statements(*texts: str, rows: bool = False, inside: bool = False, **options: Any) -> tuple[list[Change], Leader]:
    log = Log()
    log.gtid()
    if inside or rows:
        log.begin()
    if rows:
        log.table_map()
        log.rows(1)
    for text in texts:
        log.query(text, **options)
    leader = Leader()
    return leader.decode(log.events), leader


def test_a_statement_that_changes_objects_is_a_transaction_of_its_own() -> None:
    found, leader = statements("CREATE TABLE t (i INT)", mode=NO_ZEROS_AND_TRUNCATED)
    first, statement, last = found
    assert first == begin(mode="NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL")
    assert isinstance(statement, Statement)
    assert (statement.database, statement.text, statement.unreadable) == ("db", "CREATE TABLE t (i INT)", "")
    assert statement.effects == (Effect("CreateTable", "db", "t"),)
    assert statement.context["database"] == "db"
    assert last == commit(statement.event)
    assert leader.logged == []


def test_a_statement_that_ends_with_begin_is_none_that_begins_a_transaction() -> None:
    (_, statement, _), _ = statements("DROP TABLE xBEGIN")
    assert isinstance(statement, Statement)
    assert statement.effects == (Effect("DropTable", "db", "xBEGIN"),)


@pytest.mark.parametrize("folds_names", [True, False])
def test_names_are_those_that_the_server_stores(folds_names: bool) -> None:
    """It logs them as they were typed."""
    log = Log()
    log.gtid()
    log.query("CREATE TABLE T (I INT)")
    (_, statement, _) = Leader(folds_names=folds_names).decode(log.events)
    assert isinstance(statement, Statement)
    assert statement.text == "CREATE TABLE T (I INT)"
    assert statement.effects == (Effect("CreateTable", "db", "t" if folds_names else "T"),)


def test_bytes_that_are_no_letters() -> None:
    (_, statement, _), _ = statements("CREATE TABLE `\udc80` (i INT)")
    assert isinstance(statement, Statement)
    # What the server has made of the name is known.
    assert (statement.effects, statement.unreadable) == ((Effect("CreateTable", "db", "?"),), "")
    (_, statement, _), _ = statements("CREATE TABLE t (i INT COMMENT '\udcff')")
    assert isinstance(statement, Statement)
    assert not statement.unreadable
    assert statement.text == "CREATE TABLE t (i INT COMMENT '?')"
    assert statement.exact == b"CREATE TABLE t (i INT COMMENT '\xff')"


def test_a_statement_in_a_transaction_is_one_of_its_changes() -> None:
    found, _ = statements("CREATE TABLE t (i INT)", "COMMIT", inside=True)
    assert kinds(found) == ["Begin", "Statement", "Commit"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("CREATE USER a IDENTIFIED BY 'secret'", "account"), ("FLUSH TABLES", "admin"),
     ("DROP TEMPORARY TABLE t", "temporary")],
)  # fmt: skip
def test_statements_that_are_not_replicated_are_logged_and_empty(text: str, kind: str) -> None:
    found, leader = statements(text)
    event = found[1]
    assert kinds(found) == ["Begin", "Commit"]
    ((what, fields),) = leader.logged
    assert isinstance(event, Commit)
    assert (what, fields["kind"]) == ("statement not replicated", kind)
    assert fields["position"] == Position(FILE, Log().gtid().end)
    assert "secret" not in fields["statement"]
    assert fields["statement"].split()[0] == text.split()[0]


@pytest.mark.parametrize(
    ("text", "what", "effects", "fires"),
    [
        ("GIBBERISH 1", "the statement is not known", (ANY_DATABASE,), False),
        ("INSERT INTO t VALUES (1)", "logged as a statement, not as rows", (ANY_DATABASE,), True),
    ],
)
def test_a_statement_that_is_not_known_is_refused(
    text: str, what: str, effects: tuple[Effect, ...], fires: bool
) -> None:
    found, _ = statements(text)
    refused = refusal(found)
    assert found[:2] == [begin(), refused]
    assert what in refused.error.what
    assert (refused.effects, refused.fires, refused.event.type) == (effects, fires, et.QUERY)
    assert refused.text.split()[0] == text.split()[0]


def test_a_statement_that_failed_in_part_is_refused() -> None:
    found, _ = statements("DROP TABLE t, u", error=1051)
    assert kinds(found) == ["Begin", "Refused", "Commit"]
    refused = refusal(found)
    assert "a statement failed on the leader in part (error 1051)" in refused.error.what


def test_the_ends_of_transactions() -> None:
    for end, rows, wanted in (
        ("COMMIT", True, ["Begin", "Rows", "Commit"]),
        ("ROLLBACK", False, ["Begin", "Commit"]),
        ("ROLLBACK", True, ["Begin", "Rows", "Refused", "Commit"]),
        ("ROLLBACK TO `a`", True, ["Begin", "Rows", "Refused"]),
        ("SAVEPOINT `a`", True, ["Begin", "Rows"]),
    ):
        found, _ = statements(end, rows=rows, inside=True)
        assert kinds(found) == wanted, end
    # Rows of an earlier transaction are none of this one's.
    log = Log().transaction(1)
    log.gtid()
    log.begin()
    log.query("ROLLBACK")
    assert kinds(decoded(*[[event] for event in log.events]))[-2:] == ["Begin", "Commit"]


def test_a_begin_in_other_words_begins_a_transaction_too() -> None:
    for text in ("BEGIN", "begin", "START TRANSACTION"):
        log = Log()
        log.gtid()
        log.query(text, mode=NO_ZEROS_AND_TRUNCATED)
        log.table_map()
        log.rows(1)
        log.xid()
        assert plain(decoded(log.events))[0] == begin(mode="NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL")


@pytest.mark.parametrize("kind", sorted(et.OF_A_STATEMENT - {17}))
def test_a_statement_with_values_of_its_own_is_not_repeated(kind: int) -> None:
    log = Log()
    log.gtid()
    log.add(kind, bytes(20))
    log.query("CREATE TABLE t (i INT)")
    log.gtid(2)
    log.query("CREATE TABLE u (i INT)")
    doubts = [
        each.effects[0].unfaithful
        for each in decoded(*[[event] for event in log.events])
        if isinstance(each, Statement)
    ]
    assert doubts[0]
    assert doubts[1:] == [""]


INNODB, STEPS = struct.pack("<BQ", 17, 5), struct.pack("<BHH", 3, 2, 1)


@pytest.mark.parametrize(("logged", "certain"), [(INNODB, True), (b"", False), (STEPS + INNODB, False)])
def test_rows_are_numbered_in_a_certain_order_by_innodb_in_steps_of_one(logged: bytes, *, certain: bool) -> None:
    log = Log()
    log.gtid()
    log.query("ALTER TABLE t DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY", more=logged)
    ((effect,),) = [each.effects for each in decoded(log.events) if isinstance(each, Statement)]
    assert (not effect.unfaithful) is certain


def test_a_load_of_a_file_is_refused_as_a_statement() -> None:
    log = opened()
    log.load("LOAD DATA INFILE 'f' INTO TABLE t")
    (_, refused) = decoded(log.events)
    assert "logged as a statement, not as rows" in refusal([refused]).error.what
    ddl = Log()
    ddl.gtid()
    ddl.load("CREATE TABLE t (i INT)", mode=NO_ZEROS_AND_TRUNCATED, of_file=255)
    found = decoded(ddl.events)
    assert found[0] == begin(mode=None)
    assert kinds(found) == ["Begin", "Statement", "Commit"]


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("ALTER TABLE t ADD FOREIGN KEY (i) references p (i)", True),
        ("ALTER TABLE t ADD i INT", False),
        ("CREATE TABLE t (i INT REFERENCES p (i))", False),
    ],
)
def test_an_added_foreign_key_comes_with_its_engine_where_the_log_shows_it(text: str, may: bool, atomic: bool) -> None:
    log = Log()
    log.gtid()
    log.query(text, more=INNODB if atomic else b"")
    (found,) = [each for each in decoded(log.events) if isinstance(each, Statement)]
    assert found.context.get("engine") == ("InnoDB" if may and atomic else None)


@pytest.mark.parametrize(
    ("version", "mark"), [("8.0.45", {"column_references": False}), ("9.7.4", {"column_references": True}), ("", {})]
)
@pytest.mark.parametrize("clause", ["p INT REFERENCES p (id)", "p INT, FOREIGN KEY (p) REFERENCES p (id)"])
def test_what_the_leader_makes_of_references_in_a_columns_definition(
    version: str, mark: dict[str, bool], clause: str
) -> None:
    """MySQL ignored them before 9.0."""
    log = Log()
    log.add(et.FORMAT_DESCRIPTION, b"\4\0" + version.encode().ljust(50, b"\0"))
    log.gtid()
    log.query(f"CREATE TABLE t ({clause})")
    (_, statement, _) = Leader().decode(log.events)
    assert isinstance(statement, Statement)
    known = {name: value for name, value in statement.context.items() if name == "column_references"}
    assert statement.context.get("engine") == ("other" if version else None), "the event has no number of a DDL"
    assert known == ({} if "FOREIGN" in clause else mark)


@pytest.mark.parametrize("rows", [True, False])
def test_a_rollback_to_a_savepoint_is_refused_where_rows_may_be_rolled_back(rows: bool) -> None:
    log = opened()
    log.query("SAVEPOINT `s`")
    if rows:
        log.table_map()
        log.rows(1)
    log.query("ROLLBACK TO `s`")
    log.xid()
    found = decoded(log.events)
    assert kinds(found) == (["Begin", "Rows", "Refused", "Commit"] if rows else ["Begin", "Commit"])
