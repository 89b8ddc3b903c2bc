"""A leader transaction that is larger than one Kafka transaction: how much of it is out, in a count that any server and
version of ``cdc`` understands.

Counted are rows, and statements as one each: they come in the same order wherever the transaction is read, while each
server cuts them into events of its own, and each version or setting into records.
"""

from zlib import crc32

from cdc.errors import PromiseError
from cdc.model.commit_entry import Partial
from cdc.producer.decode.changes import Rows

__all__ = ["CommittedPart", "content_sum"]

_MOST = 1000
_WAY_OUT = (
    "go on with the server and the version of before until that transaction is through; where these are gone, give the "
    "producer a new topic and the follower a fresh copy"
)


def content_sum(uri: str, text: str) -> int:
    """Tells one row (JSON text) or statement from another, in a time that does not grow with it."""
    shown = text if len(text) <= 2 * _MOST else f"{len(text)} {text[:_MOST]}{text[-_MOST:]}"
    return crc32(f"{uri} {shown}".encode("utf-8", "surrogatepass"))


class CommittedPart:
    """Passes over the rows of ``out`` while its transaction is read again; ``left`` are still to come."""

    def __init__(self, out: Partial) -> None:
        self.out = out
        self.left = out.rows or 0

    def rows(self, change: Rows, uri: str) -> Rows:
        """The rows of ``change`` that are not out. Raises PromiseError where the last one that is was another."""
        out = change.rows[: self.left]
        if out:
            self._pass(len(out), uri, out[-1])
        return change._replace(rows=change.rows[len(out) :])

    def statement(self, uri: str, text: str) -> bool:
        """Whether it is out. Raises PromiseError as ``rows`` does."""
        if not self.left:
            return False
        self._pass(1, uri, text)
        return True

    def _pass(self, number: int, uri: str, last: str) -> None:
        self.left -= number
        if not self.left and content_sum(uri, last) != self.out.newest:
            raise PromiseError(
                f"{self.out.rows} rows of transaction {self.out.transaction} are out, and the last of them was another "
                f"one than what the leader has there now, a row of {uri}",
                hint=f"a server or version that logs or reads other rows: {_WAY_OUT}",
            )

    def require_more(self, records: int) -> None:
        """Raise PromiseError unless more than was out have come, once the transaction is through: ``records``."""
        if self.left or records <= self.out.records:
            have = (self.out.rows or 0) - self.left
            raise PromiseError(
                f"{self.out.rows} rows of transaction {self.out.transaction} are out, but it now has {have}",
                hint=f"the leader logged it anew: {_WAY_OUT}",
            )
