"""Continues a leader transaction that is larger than one Kafka transaction, after the part of it that is committed.

The committed part is counted in rows; a statement counts as one row. Each server returns the rows in the same order,
but may divide them into other events. Another version or other settings of ``cdc`` may divide them into other records.

A replica changes and deletes the rows of a table without a key in the order in which it finds them in its table, and
logs them in that order. So after a failover other rows of such a table may be the first ones: the sum of all their
checksums shows whether the committed rows are the same.
"""

from collections.abc import Callable, Iterable
from zlib import crc32

from cdc.errors import PromiseError
from cdc.model.commit_entry import Partial
from cdc.producer.decode.changes import Rows
from cdc.producer.large_rows.large_text import LargeText

__all__ = ["SUMS", "CommittedPart", "content_sum", "row_sum", "unordered_sum"]

SUMS = 1 << 64  # sums of checksums are below this number

_SUMMED = 1000  # number of characters at each end of a text that its checksum covers
_LONGEST = 4  # maximum number of bytes of a character in UTF-8
_INSIDE_A_CHARACTER = bytes(range(0x80, 0xC0))  # bytes in UTF-8 that are not the first byte of a character
_SLICE = 1 << 20
_WAY_OUT = (
    "continue with the server and the version that wrote them until that transaction is complete; where these are "
    "gone, give the producer a new topic and the follower a fresh copy"
)


def content_sum(uri: str, text: str) -> int:
    """Computes a checksum that distinguishes a statement, or a row's JSON text, from others; does not read all of a
    long text.
    """
    part = text if len(text) <= 2 * _SUMMED else f"{len(text)} {text[:_SUMMED]}{text[-_SUMMED:]}"
    return crc32(f"{uri} {part}".encode("utf-8", "surrogatepass"))


def row_sum(uri: str, row: bytes | LargeText) -> int:
    """Computes the ``content_sum`` of a row's JSON text, which is in UTF-8; decodes only the two ends of a
    long text.
    """
    enough = _LONGEST * _SUMMED
    if len(row) <= 2 * enough:
        return content_sum(uri, bytes(row).decode())
    if isinstance(row, LargeText):
        length, ends = row.characters, (row.head(enough)[:enough], row.tail(enough)[-enough:])
    else:
        slices = (row[begin : begin + _SLICE] for begin in range(0, len(row), _SLICE))
        length = sum(len(part.translate(None, _INSIDE_A_CHARACTER)) for part in slices)
        ends = row[:enough], row[-enough:]
    # A cut may split a character, but only outside of the characters that the checksum covers.
    head, tail = (part.decode(errors="ignore") for part in ends)
    return crc32(f"{uri} {length} {head[:_SUMMED]}{tail[-_SUMMED:]}".encode())


def unordered_sum(change: Rows, uri: str, rows: Iterable[bytes | LargeText]) -> int:
    """Returns the sum of the checksums of ``rows``, which are rows of ``change``; 0 if each server logs them in the
    same order.
    """
    if change.operation == "Add" or change.table.keyed:
        return 0
    return sum(row_sum(uri, row) for row in rows) % SUMS


class CommittedPart:
    """Leaves out the committed rows of ``partial`` while its transaction is read again; ``left`` is the number of these
    rows that are still to be read."""

    def __init__(self, partial: Partial) -> None:
        self.partial = partial
        self.left = partial.rows or 0
        self._unordered = 0

    def rows(self, change: Rows, uri: str) -> Rows:
        """Returns ``change`` without its committed rows. Raises PromiseError if the last committed row differs from the
        row read now.
        """
        committed = change.rows[: self.left]
        if committed:
            unordered = unordered_sum(change, uri, committed) if self.partial.unordered else 0
            self._unordered = (self._unordered + unordered) % SUMS
            # The sum contains the last row, whichever row that is.
            self._leave_out(len(committed), lambda: row_sum(uri, committed[-1]) if not unordered else None, uri)
        return change._replace(rows=change.rows[len(committed) :])

    def statement(self, uri: str, text: str) -> bool:
        """Whether the statement is committed. Raises PromiseError if the last committed statement differs from this
        statement."""
        if not self.left:
            return False
        self._leave_out(1, lambda: content_sum(uri, text), uri)
        return True

    def _leave_out(self, number: int, newest: Callable[[], int | None], uri: str) -> None:
        self.left -= number
        if self.left:
            return
        if newest() not in (self.partial.newest, None) or self._unordered != self.partial.unordered:
            raise PromiseError(
                f"{self.partial.rows} rows of transaction {self.partial.transaction} are committed, and not all of "
                f"them are those that the leader has there now; the last one was a row of {uri}",
                code="CDC-TOPIC-RECORDS-DIFFER",
                hint=f"a server or version that logs or reads other rows: {_WAY_OUT}",
            )

    def require_more(self, records: int) -> None:
        """Raises PromiseError unless the complete transaction has more records than its committed part; ``records`` is
        their number.
        """
        if self.left or records <= self.partial.records:
            have = (self.partial.rows or 0) - self.left
            raise PromiseError(
                f"{self.partial.rows} rows of transaction {self.partial.transaction} are committed, but it now has "
                f"{have}",
                code="CDC-TOPIC-RECORDS-DIFFER",
                hint=f"the leader logged it again in another way: {_WAY_OUT}",
            )
