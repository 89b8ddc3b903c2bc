"""The stream up to its first fault: what came before a gap or a bad record is applied before anybody stops for it."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from cdc.errors import CdcError

__all__ = ["Intact"]

Item = TypeVar("Item")


class Intact(Generic[Item]):
    """The ``items`` before the first that raises a CdcError; ``check_end`` raises that, once they are dealt with."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self._fault: CdcError | None = None

    def __iter__(self) -> Iterator[Item]:
        try:
            yield from self._items
        except CdcError as error:
            self._fault = error

    def check_end(self) -> None:
        """Raises the fault at which the items ended, if it is one."""
        if self._fault is not None:
            raise self._fault
