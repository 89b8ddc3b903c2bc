"""Completes a record if readers see only its first fragments, because a commit arrived early."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cdc.errors import PromiseError
from cdc.kafka.fragments import Fragment

__all__ = ["Begun", "rest"]


class Begun(NamedTuple):
    """The newest fragment that readers see of an incomplete record."""

    newest: Fragment
    value: bytes


def rest(fragments: Iterable[tuple[bytes, bytes]], after: Begun, *, where: str) -> Iterator[tuple[bytes, bytes]]:
    """The ``fragments`` of a record that follow ``after``, the newest one that readers see.

    Raises PromiseError if the record was cut in another way, so that these fragments do not continue it.
    """
    for mark, fragment in fragments:
        made = Fragment(*map(int, mark.split()))
        is_same = made == after.newest._replace(number=made.number)
        # Even with the same number of fragments, this one may end elsewhere in the record.
        if not is_same or (made.number == after.newest.number and fragment != after.value):
            raise PromiseError(
                f"the first fragments of record {made.sequence} are committed already, but it is cut differently now",
                code="CDC-TOPIC-RECORDS-DIFFER",
                where=where,
                hint="run with the version and producer.message_bytes that wrote them until that record is complete",
            )
        if made.number > after.newest.number:
            yield mark, fragment
