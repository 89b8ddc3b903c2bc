"""Reads ``producer.start``: where a producer without a commit log starts in the binlog."""

import re

from cdc.errors import UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position

__all__ = ["BEGINNING", "NOW", "OLDEST", "WORDS", "parsed_start"]

WORDS = BEGINNING, OLDEST, NOW = "beginning", "oldest", "now"


def parsed_start(text: str) -> GtidSet | Position:
    """The GTIDs or the binlog position that a copy of the leader was made at, from ``producer.start``.

    Raises UserError for other text.
    """
    if re.fullmatch(r"\S+\.\d+:\d+", text):
        return Position.parse(text)
    try:
        held = GtidSet.parse(text)
    except UserError:
        held = GtidSet()
    if not held:
        raise UserError(
            f"{text!r} is not a position to start from",
            where="profile key producer.start",
            hint=f'"{BEGINNING}", "{OLDEST}", "{NOW}", a GTID set "uuid:1-5", or "file:offset"',
        )
    return held
