"""A follower's status as text."""

import base64
import json
from datetime import UTC, datetime

from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.consumer.state.status import Applied, Entry, ResolvedConflict, Status, as_json, as_text
from cdc.model.values import UNSEEN

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)
APPLIED = Applied(
    sequence=7, topic="topic", topic_id="id", offsets={TopicIdPartition("topic", 0, "id"): 12},
    position="binlog.000003:1007", transaction="gtid:8", ts_us=0, at=AT,
)  # fmt: skip


def shown(status: Status, *, following: int | None = 8) -> list[str]:
    return as_text(status, follower="user@host:3306", resource="leader", following=following).splitlines()


def test_what_would_steer_a_terminal() -> None:
    """Statements for a client are exact where no terminal shows them."""
    statement = "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW\r\n\tSET @a = '\x1b[2J\r\x9b'"
    entry = Entry(8, "not applied", statement, "\u202enote", AT)
    status = Status(None, APPLIED, newest=(entry,), missing=(entry,))
    for terminal in (True, False):
        text = as_text(status, follower="user@host", resource="leader", following=8, terminal=terminal)
        assert "(\\u202enote)" in text
        assert (statement in text) is not terminal
        assert not terminal or not UNSEEN.search(text.replace("\n", "").replace("\t", ""))


def test_a_follower_in_trouble() -> None:
    refused = Entry(8, "intent", "ALTER TABLE t ADD b INT DEFAULT 'secret'", "", AT)
    skipped = Entry(5, "skipped", "Add, 2 rows of flv://leader/d/t", "Data too long", AT)
    conflict = ResolvedConflict(12, 6, "flv://leader/d/t", "Add", "id=1", "Duplicate entry", "id=2", AT)
    found = shown(
        Status(
            4711, APPLIED, states={"skipped": 1, "done": 6, "intent": 1}, newest=(refused, skipped), open=(refused,),
            skipped=(skipped,), conflicts=(conflict,),
        ),
        following=20,
    )  # fmt: skip
    assert "consumer     running, connection 4711" in found
    assert "checkpoint   sequence 7, applied 2026-01-02 03:04:05 UTC" in found
    assert any(line.startswith("lag          12 records, at most ") for line in found)
    assert "ledger       6 done, 1 intent, 1 skipped" in found
    entries = [line for line in found if line.startswith(("  5 ", "  8 "))]
    # The ledger's rows are in the order in which they came; then those that are open, and those that were skipped.
    assert [line.split()[0] for line in entries] == ["5", "8", "8", "5"]
    assert "  8  2026-01-02 03:04:05  intent: ALTER TABLE t ADD b INT DEFAULT …" in found
    assert "conflicts    12" in found
    assert "  6  2026-01-02 03:04:05  Add of id=1 in flv://leader/d/t: Duplicate entry; removed id=2" in found


def test_a_follower_that_is_up_to_date() -> None:
    found = shown(Status(None, APPLIED, states={"done": 8}))
    assert "consumer     not running" in found
    assert "lag          0 records" in found
    assert not [line for line in found if line.startswith(("open intents", "skipped"))]


def test_what_a_promotion_creates_is_a_script() -> None:
    trigger = Entry(
        3, "not applied", "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.i = 5; END", "", AT,
        {"database": "my db", "sql_mode": "ANSI_QUOTES"},
    )  # fmt: skip
    found = shown(Status(None, APPLIED, missing=(trigger,)))
    script = found[found.index("DELIMITER ;;") : found.index("DELIMITER ;") + 1]
    assert script[1:-1] == [
        "SET NAMES utf8mb4;;", "USE `my db`;;",
        "SET sql_mode = 'ANSI_QUOTES', time_zone = DEFAULT, timestamp = DEFAULT;;", f"{trigger.statement};;",
    ]  # fmt: skip


def test_what_a_promotion_creates_has_the_leaders_session() -> None:
    context = {
        "sql_mode": "", "time_zone": "+05:00", "charset": "latin1", "collation": "latin1_german1_ci",
        "timestamp_us": 1_700_000_000_000_005,
    }  # fmt: skip
    ascii_text, other = (
        Entry(3, "not applied", f"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT '{text}'", "", AT, context)
        for text in ("a", "ä")
    )
    found = shown(Status(None, APPLIED, missing=(ascii_text, other)))
    settings = [line for line in found if line.startswith("SET sql_mode")]
    session = "SET sql_mode = '', time_zone = '+05:00', timestamp = 1700000000.000005, "
    assert settings == [
        f"{session}character_set_client = 'latin1', collation_connection = 'latin1_german1_ci';;",
        f"{session}collation_connection = 'latin1_german1_ci';;",
    ]


def test_a_trigger_that_no_text_in_utf8_creates_is_only_named() -> None:
    """Its bytes are no letters, or stand in a literal whose character set it names."""
    head = "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET @a = "

    def entry(sequence: int, literal: str, **context: str) -> Entry:
        return Entry(sequence, "not applied", head + literal, "note", AT, context)

    def exact(literal: str) -> str:
        return base64.b64encode((head + literal).encode("cp1251", "surrogateescape")).decode()

    missing = (
        entry(1, "'ж'", charset="cp1251", bytes=exact("'ж'")),
        entry(2, "_cp1251'ж'", charset="cp1251", bytes=exact("_cp1251'ж'")),
        entry(3, "'?'", charset="cp1251", bytes=exact("'\udc98'")),
        entry(4, "_latin1 'é'", charset="latin1"),
        entry(5, "'é'", charset="latin1"),
        entry(6, "_utf8mb4'é'", charset="utf8mb4"),
    )
    found = shown(Status(None, APPLIED, missing=missing))
    assert [line[-20:].rpartition("= ")[2] for line in found if line.startswith("CREATE")] == [
        "'ж';;", "'é';;", "_utf8mb4'é';;",
    ]  # fmt: skip
    at = found.index(
        "  These have bytes that are no text, or no UTF-8. Create them by hand; the ledger has their bytes:"
    )
    assert [line.split()[0] for line in found[at + 1 : at + 4]] == ["2", "3", "4"]


def test_a_silent_producer_is_told_beside_the_lag() -> None:
    status = Status(None, APPLIED)
    text = as_text(status, follower="f", resource="r", following=8, silent=734.4)
    assert "lag          0 records; nothing heard of the producer for 734 s" in text
    assert json.loads(as_json(status, follower="f", resource="r", following=8, silent=2.5))["producer"] == {
        "silent_seconds": 2.5
    }
    assert "nothing heard" not in as_text(status, follower="f", resource="r", following=8)
