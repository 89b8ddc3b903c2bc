"""Judges a list-append workload that runs for hours. Pure; it keeps only the lists that may still be read or written.

The workload is that of tests/checks/list_append.py: each number is appended once, so the lists show what is lost,
repeated, torn or out of order. Three sources are compared, each in its own order, and each as late as it likes:
transactions that the leader confirmed to their writers, transactions that the topic has, and states of the follower.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.checks.list_append import Appends, Lists, Transaction

__all__ = ["GrowingHistory", "Read"]


@dataclass(frozen=True, slots=True)
class Read:
    """A state of the follower's lists from key ``first`` on, read at one moment. ``number`` counts the reads."""

    number: int
    first: int
    lists: Lists


@dataclass(slots=True)
class _List:
    """The numbers of a list, and for each the place of its transaction in the topic."""

    numbers: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


class GrowingHistory:
    """Adds what is seen piece by piece; ``faults`` are what a leader can't have done, as sentences.

    ``transactions`` and ``operations`` count what the topic had. Keys are used in ascending order: after ``drop`` no
    transaction may have a key below the one given.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.transactions = self.operations = self.judged = 0
        self._first_key = 0
        self._lists: dict[int, _List] = {}
        self._confirmed: dict[int, Transaction] = {}  # by the first number; not in the topic yet
        self._unconfirmed: deque[Appends] = deque()  # in the topic, in its order; the first was not confirmed yet
        self._latest_begun = -1
        self._reads: deque[Read] = deque()
        self._last_place = 0

    def confirm(self, transaction: Transaction) -> None:
        """Adds a transaction that the leader confirmed."""
        self._confirmed[transaction.appends[0][1]] = transaction
        self._compare()

    def add(self, appends: Appends, texts: Sequence[str]) -> None:
        """Adds the topic's next transaction; ``texts`` are the lists that its records show after each append."""
        for (key, number), text in zip(appends, texts, strict=True):
            if key < self._first_key:
                self.faults.append(f"number {number} was appended to list {key}, which was finished before")
                continue
            found = self._lists.setdefault(key, _List())
            if found.numbers and number in found.numbers:
                self.faults.append(f"number {number} was appended to list {key} twice")
            found.numbers.append(number)
            found.places.append(self.transactions)
            if text != " ".join(map(str, found.numbers)):
                self.faults.append(f"the record of number {number} has another list {key}: {text[-60:]}")
        self.transactions += 1
        self.operations += len(appends)
        self._unconfirmed.append(appends)
        self._compare()
        self._judge()

    def read(self, read: Read) -> None:
        """Adds a state of the follower; reads come in the order in which they were made."""
        self._reads.append(read)
        self._judge()

    def numbers(self, key: int) -> list[int]:
        """The list of ``key`` so far, as the topic has it."""
        return self._lists[key].numbers if key in self._lists else []

    def drop(self, below: int) -> None:
        """Forgets the lists of keys below ``below``, which no read that is made from now on contains."""
        self._first_key = below
        for key in [key for key in self._lists if key < below]:
            del self._lists[key]

    @property
    def waiting(self) -> int:
        """How many transactions and reads wait for another source."""
        return len(self._confirmed) + len(self._unconfirmed) + len(self._reads)

    def unsettled(self) -> list[str]:
        """What still waits for another source. At rest, when all was read to its end, each of these is a fault."""
        waiting = [f"transaction of number {number} is not in the topic" for number in self._confirmed]
        waiting += [f"transaction of number {each[0][1]} was not confirmed" for each in self._unconfirmed]
        return waiting + [f"read {each.number} has a number that is not in the topic" for each in self._reads]

    def _compare(self) -> None:
        """Compares what both the leader has confirmed and the topic has, in the topic's order."""
        while self._unconfirmed and (found := self._confirmed.pop(self._unconfirmed[0][0][1], None)):
            appends = self._unconfirmed.popleft()
            if appends != found.appends:
                self.faults.append(f"the transaction of number {appends[0][1]} is torn, or of several")
            if found.ended < self._latest_begun:
                self.faults.append(f"the transaction of number {appends[0][1]} had ended before one in front of it")
            self._latest_begun = max(self._latest_begun, found.begun)

    def _judge(self) -> None:
        """Judges the reads whose newest transactions the topic has shown."""
        while self._reads and all(self._is_known(key, each[-1]) for key, each in self._reads[0].lists.items() if each):
            read = self._reads.popleft()
            self.judged += 1
            place = max((self._place(key, each[-1]) for key, each in read.lists.items() if each), default=-1) + 1
            if fault := self._fault(read, place):
                self.faults.append(f"read {read.number}: {fault}")
            # A state without any list says nothing of what is finished.
            if place and place < self._last_place:
                self.faults.append(f"read {read.number}: it went back from transaction {self._last_place} to {place}")
            self._last_place = max(self._last_place, place)

    def _is_known(self, key: int, number: int) -> bool:
        return number in self.numbers(key)

    def _place(self, key: int, number: int) -> int:
        found = self._lists[key]
        return found.places[found.numbers.index(number)]

    def _fault(self, read: Read, place: int) -> str | None:
        """How a state differs from the topic's first ``place`` transactions."""
        for key in sorted(read.lists.keys() | {key for key in self._lists if key >= read.first}):
            known = self._lists.get(key, _List())
            wanted = known.numbers[: bisect_left(known.places, place)]
            if (found := list(read.lists.get(key, ()))) != wanted:
                return (
                    f"after {place} transactions list {key} has {len(wanted)} numbers {wanted[-3:]}, not {found[-3:]}"
                )
        return None
