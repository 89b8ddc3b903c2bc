"""Which objects the statements of both sides define differently; data/definitions.txt has cases of it."""

import re
from pathlib import Path

import pytest

from cdc.config.renames import Renames
from cdc.model.gtid import StatementSequences, statement_gtid
from cdc.spark.ddl.definitions import definitions, renamed_statement
from cdc.spark.ddl.lineage import TEXT, Act
from cdc.sql.statement import classify

LEADER, OWN = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1", "22222222-2222-2222-2222-222222222222:7"


def act(action: str, path: str, to: str | None = None, *, text: str = "") -> tuple[str, str, str | None, str]:
    return action, path, to, text or f"{action} {path}"


SEQUENCES = StatementSequences("srv", {statement_gtid("srv", number): number - 1 for number in range(1, 20)})
CREATE, DROP, ALTER = act("CreateTable", "db/t"), act("DropTable", "db/t"), act("AlterTable", "db/t")
TRUNCATE, RENAME = act("TruncateTable", "db/t"), act("RenameTable", "db/t", "db/u")


def leaders(*acts: tuple[str, str, str | None, str]) -> list[Act]:
    """Statements of the leader, with sequences from 0."""
    return [made(at, *each, transaction=LEADER) for at, each in enumerate(acts)]


def followers(*ran: int | tuple[str, str, str | None, str], of: list[Act] | None = None) -> list[Act]:
    """What the follower ran: the leader's statement of a sequence, or one of its own."""
    acts = []
    for at, each in enumerate(ran):
        if isinstance(each, int):
            one = (of or [])[each]
            acts.append(
                made(
                    at + 100,
                    one.action,
                    one.uri[11:],
                    one.to and one.to[11:],
                    one.text,
                    transaction=statement_gtid("srv", each + 1),
                )
            )
        else:
            acts.append(made(at + 100, *each, transaction=OWN))
    return acts


def made(sequence: int, action: str, path: str, to: str | None, text: str, *, transaction: str) -> Act:
    named = to and f"flv://srvr/{to}"
    return Act(sequence, 0, action, f"flv://srvr/{path}", named, transaction=transaction, file="b.1", text=text)


def drift(leader: list[Act], follower: list[Act], *, rows: tuple[str, ...] = (), **not_run: str) -> dict[str, str]:
    """Each object that differs, and why; ``not_run`` as ``_3="skipped"``."""
    states = {int(number[1:]): state for number, state in not_run.items()}
    have_rows = {("db", name) for name in rows}
    found = definitions(leader, follower, sequences=SEQUENCES, not_run=states, rows=have_rows).drift
    names = [".".join(filter(None, (each.database, each.name))) for each in found]
    return {f"{each.kind} {name}": each.cause for each, name in zip(found, names, strict=True)}


T, U = {"Table db.t": "schema drift"}, {"Table db.u": "schema drift"}


LIKE = act("CreateTable", "db/u", text="CREATE TABLE u LIKE t")


TEXT_CASES = (Path(__file__).parents[2] / "data" / "definitions.txt").read_text(encoding="utf-8")
CASES = re.findall(r"^leader: ?(.*)\nfollower: ?(.*)\n= (.*)$", TEXT_CASES, re.M)


def as_act(text: str) -> tuple[str, str, str | None, str]:
    """A statement in the database db, of which the first effect is taken."""
    _, (effect, *_) = classify(text, database="db", ansi_quotes=False)
    path = "/".join(filter(None, (effect.database, effect.name)))
    return effect.action, path, "/".join(effect.to) if effect.to else None, text


@pytest.mark.parametrize(("statements", "ran", "expected"), CASES)
def test_a_case_of_definitions(statements: str, ran: str, expected: str) -> None:
    leader = leaders(*map(as_act, filter(None, statements.split("; "))))
    own = [int(each) - 1 if each.isdigit() else as_act(each) for each in ran.split("; ") if each]
    found = drift(leader, followers(*own, of=leader))
    assert (", ".join(f"{name}: {cause}" for name, cause in found.items()) or "none") == expected


def test_evidence_for_a_table_that_was_created_like_another() -> None:
    leader = leaders(CREATE, act("CreateTable", "db/x"), LIKE, DROP)
    follower = followers(0, 1, ALTER, act("AlterTable", "db/x"), 2, 3, of=leader)
    found = definitions(leader, follower, sequences=SEQUENCES, not_run={}, rows=()).drift
    assert {each.name: each.evidence.partition(" (")[0] for each in found} == {
        "u": "only the follower has: AlterTable db/t", "x": "only the follower has: AlterTable db/x"
    }  # fmt: skip


def test_a_table_with_rows_that_the_follower_dropped_is_drift_even_with_if_exists() -> None:
    dropped = followers(act("DropTable", "db/x", text="DROP TABLE IF EXISTS x"))
    assert drift([], dropped, rows=("x",)) == {"Table db.x": "schema drift"}
    trigger = followers(act("DropTrigger", "db/x", text="DROP TRIGGER IF EXISTS db.x"))
    assert drift([], trigger, rows=("x",)) == {}


def test_statements_that_the_follower_did_not_run() -> None:
    leader = leaders(CREATE, ALTER)
    assert drift(leader, followers(0, of=leader), _1="not applied") == {}
    assert drift(leader, followers(0, of=leader), _1="skipped") == {"Table db.t": "skipped sequence"}
    # A skipped statement that was run by hand counts as run, but a second one does not.
    assert drift(leader, followers(0, ALTER, of=leader), _1="skipped") == {}
    assert drift(leader, followers(0, ALTER, ALTER, of=leader), _1="skipped") == T


ADD = "ALTER TABLE t ADD y INT DEFAULT 7"


@pytest.mark.parametrize(
    ("skipped", "by_hand", "same"),
    [
        (ADD, ADD, True),
        (ADD, "alter  table `t`\nadd Y int default 7 -- by hand", True),
        (ADD, "ALTER TABLE t DROP COLUMN precious", False),
        (ADD, "ALTER TABLE t ADD y INT DEFAULT 8", False),
        (ADD, "ALTER TABLE other.t ADD y INT DEFAULT 7", False),
        ("ALTER TABLE t ADD CHECK (a = 'X')", "ALTER TABLE t ADD CHECK (a = 'x')", False),
        (ADD, "ALTER TABLE t ADD y INT DEFAULT '7'", False),
        # Texts that were truncated are never the same.
        (ADD + " " * TEXT, ADD + " " * TEXT, False),
    ],
)  # fmt: skip
def test_a_statement_run_by_hand_must_have_the_skipped_text(skipped: str, by_hand: str, *, same: bool) -> None:
    leader = leaders(CREATE, act("AlterTable", "db/t", text=skipped))
    follower = followers(0, act("AlterTable", "db/t", text=by_hand), of=leader)
    found = definitions(leader, follower, sequences=SEQUENCES, not_run={1: "skipped"}, rows=())
    sides = [] if same else ["leader", "follower"]
    assert ([each.cause for each in found.drift], [each.side for each in found.unmatched]) == (
        ["schema drift"] * (not same), sides
    )  # fmt: skip


@pytest.mark.parametrize(
    ("action", "skipped", "by_hand", "same"),
    [
        ("CreateTable", "CREATE TABLE db.n LIKE db.m", "CREATE TABLE copy.n LIKE copy.m", True),
        ("CreateTable", "CREATE TABLE db.n LIKE db.m", "CREATE TABLE copy.n LIKE db.m", False),
        ("CreateTable", "CREATE TABLE n (copy INT)", "CREATE TABLE n (db INT)", False),
        ("CreateDatabase", "CREATE DATABASE db", "CREATE DATABASE `copy`", True),
        ("CreateDatabase", "CREATE DATABASE db", "CREATE DATABASE db", False),
    ],
)
def test_a_statement_run_by_hand_with_renamed_databases(action: str, skipped: str, by_hand: str, *, same: bool) -> None:
    path = "db/n" if action.endswith("Table") else "db"
    leader, follower = leaders(act(action, path, text=skipped)), followers(act(action, path, text=by_hand))
    found = definitions(
        leader, follower, sequences=SEQUENCES, not_run={0: "skipped"}, rows=(), renames=Renames({"db": "copy"})
    )
    assert (found.drift == []) is same


def test_evidence_names_statement_position_and_time() -> None:
    (found,) = definitions([], followers(CREATE), sequences=SEQUENCES, not_run={}, rows=()).drift
    assert (
        found.evidence
        == f"only the follower has: CreateTable db/t (transaction {OWN} at b.1:0, 1970-01-01 00:00:00 UTC)"
    )


def test_a_statement_that_the_follower_ran_on_other_names() -> None:
    leader = leaders(CREATE)
    assert renamed_statement(leader, followers(0, of=leader), sequences=SEQUENCES) is None
    other = [made(100, "CreateTable", "copy/t", None, "", transaction=statement_gtid("srv", 1))]
    assert renamed_statement(leader, other, sequences=SEQUENCES) == 0
