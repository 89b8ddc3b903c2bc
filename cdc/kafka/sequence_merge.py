"""Takes numbered items from several lanes, each in ascending order, and gives them in the order of all numbers."""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["Merge"]

Lane = TypeVar("Lane", bound=Hashable)
Item = TypeVar("Item")


class Merge(Generic[Lane, Item]):
    """Gives the items from ``next_number`` on, without a gap; lower ones are ignored.

    In each lane numbers only grow. So the missing item cannot be in a lane from which a later one waits: such lanes
    may be stopped to save memory, and the item still arrives.
    """

    def __init__(self, next_number: int) -> None:
        self.next_number = next_number
        self.bytes = 0
        self._waiting: dict[int, tuple[Lane, int, Item]] = {}
        self._lanes: Counter[Lane] = Counter()

    def add(self, lane: Lane, number: int, item: Item, *, size: int) -> None:
        """Add an item of ``size`` bytes."""
        if number >= self.next_number and number not in self._waiting:
            self._waiting[number] = (lane, size, item)
            self._lanes[lane] += 1
            self.bytes += size

    def ready(self) -> Iterator[Item]:
        """The items that are next."""
        while self.next_number in self._waiting:
            lane, size, item = self._waiting.pop(self.next_number)
            self.next_number += 1
            self._lanes[lane] -= 1
            self.bytes -= size
            yield item

    def pass_gap(self) -> None:
        """Skip missing numbers: go on with the lowest one that waits."""
        self.next_number = min(self._waiting, default=self.next_number)

    def rest(self) -> Iterator[Item]:
        """All items that wait, in order, over all gaps."""
        for number in sorted(self._waiting):
            if number in self._waiting:
                self.next_number = number
                yield from self.ready()

    def lanes(self) -> set[Lane]:
        """The lanes from which items wait."""
        return set(+self._lanes)
