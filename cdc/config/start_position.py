"""Parses ``producer.start`` and ``consumer.start``.

``producer.start`` is the place in the binlog at which a producer starts if there is no commit log yet.
``consumer.start`` is the GTID set of the base copy with which a follower without a checkpoint began.
"""

import re

from cdc.errors import UserError
from cdc.model.gtid import GtidSet, executed_before, is_gtid
from cdc.model.position import Position

__all__ = ["AUTO", "BEGINNING", "COPY", "COPY_KEY", "NOW", "OLDEST", "WORDS", "parsed_copy", "parsed_start"]

WORDS = AUTO, BEGINNING, COPY, OLDEST, NOW = "auto", "beginning", "copy", "oldest", "now"
COPY_KEY = "profile key consumer.start"


def parsed_start(text: str) -> GtidSet | Position:
    """Parses ``producer.start``: the GTID set or binlog position at which a copy of the leader was made.

    Raises UserError for other text.
    """
    if re.fullmatch(r"\S+\.\d+:\d+", text):
        return Position.parse(text)
    try:
        held = _gtids(text)
    except UserError:
        held = GtidSet()
    if not held:
        raise UserError(
            f"{text!r} is not a position to start from",
            code="CDC-PROFILE-START",
            where="profile key producer.start",
            hint=f'"{AUTO}", "{BEGINNING}", "{COPY}", "{OLDEST}", "{NOW}", a GTID set "uuid:1-5" '
            '(of MariaDB "0-1-5"), or "file:offset"',
        )
    return held


def _gtids(text: str) -> GtidSet:
    """Returns the transactions of a GTID set, or before a GTID position of MariaDB. Raises UserError."""
    is_position = all(is_gtid(gtid.strip()) and ":" not in gtid for gtid in text.split(","))
    return executed_before(text) if is_position else GtidSet.parse(text)


def parsed_copy(text: str) -> GtidSet:
    """Parses ``consumer.start``: the GTIDs of all transactions that the follower's base copy contains. Raises UserError
    for other text."""
    try:
        held = _gtids(text)
    except UserError as error:
        raise UserError(
            error.what, code=error.code, where=COPY_KEY, hint=error.hint or "write uuid:first-last"
        ) from None
    if not held:
        raise UserError(
            f"{text!r} is no GTID set of a copy",
            code="CDC-PROFILE-COPY-GTIDS",
            where=COPY_KEY,
            hint='write the copy\'s GTID set "uuid:1-5", or leave the key out for a follower that begins empty',
        )
    return held
