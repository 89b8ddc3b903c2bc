"""Where a producer without a commit log begins, as ``producer.start`` in the profile says."""

import re

from cdc.errors import UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position

__all__ = ["BEGINNING", "NOW", "OLDEST", "WORDS", "parsed_start"]

WORDS = BEGINNING, OLDEST, NOW = "beginning", "oldest", "now"


def parsed_start(text: str) -> GtidSet | Position:
    """What a copy of the leader holds, as ``producer.start`` names it: its GTIDs, or how far it has the binlog.

    Raises UserError for what is neither.
    """
    if re.fullmatch(r"\S+\.\d+:\d+", text):
        return Position.parse(text)
    try:
        held = GtidSet.parse(text)
    except UserError:
        held = GtidSet()
    if not held:
        raise UserError(
            f"{text!r} is no place to start from",
            where="profile key producer.start",
            hint=f'"{BEGINNING}", "{OLDEST}", "{NOW}", a GTID set "uuid:1-5", or "file:offset"',
        )
    return held
