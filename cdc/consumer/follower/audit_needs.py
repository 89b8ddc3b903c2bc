"""Logs what an audit of the follower needs: the capture of its own binlog, and settings of the server for that."""

import logging
from typing import Any

from cdc.consumer.follower.session import Session
from cdc.service.logs import event

__all__ = ["SETTINGS", "log_settings", "log_unread"]

_LOG = logging.getLogger("cdc.consumer")
# An audit needs these settings, because it reads the names of columns and all values from the follower's binlog.
SETTINGS = {
    "binlog_format": "ROW", "binlog_row_metadata": "FULL", "binlog_row_image": "FULL", "binlog_row_value_options": "",
}  # fmt: skip
_COMMAND = 4  # index of the column Command in SHOW PROCESSLIST


def log_settings(session: Session) -> None:
    """Logs what an audit will need, with the present settings, and the statements that change those that prevent it."""
    found = {name: str(session.rows(f"SELECT @@GLOBAL.{name}")[0][0]) for name in SETTINGS}
    wrong = [f"SET PERSIST {name} = '{wanted}'" for name, wanted in SETTINGS.items() if found[name] != wanted]
    fields: dict[str, Any] = {name: value or "empty" for name, value in found.items()}
    if wrong:
        fields["hint"] = f"on the follower, or its capture will stop: {'; '.join(wrong)}"
    event(
        _LOG, "an audit needs a capture of the follower's own binlog", capture="cdc-producer FOLLOWER_PROFILE", **fields
    )


def log_unread(session: Session) -> None:
    """Logs a hint if no client reads the follower's binlog."""
    if not any(str(row[_COMMAND]).startswith("Binlog Dump") for row in session.rows("SHOW PROCESSLIST")):
        event(
            _LOG, "no client reads the follower's own binlog",
            hint="if the follower is to be audited, start its capture (cdc-producer with the follower's "
            "profile) before the consumer; one that begins later has to copy the follower's tables first "
            '(producer.start = "copy")',
        )  # fmt: skip
