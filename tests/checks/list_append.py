"""Checks what a list-append workload left on the leader, in the topic and on the follower. Pure.

Each transaction of the workload appends numbers, each used once, to lists under several keys. So a number tells which
transaction wrote it, and the order of a list is the order in which transactions committed: what is lost, repeated, torn
or out of order shows in the lists alone. The idea is that of Elle (Kingsbury, Alvaro: "Inferring Isolation Anomalies
from Experimental Observations", 2020).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Appends", "History", "Lists", "Transaction"]

Appends = tuple[tuple[int, int], ...]
"""Keys with the numbers appended to their lists, in order."""
Lists = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that the leader confirmed. ``begun`` and ``ended`` are readings of one clock that all writers
    share: taken before its first statement, and after the confirmation.
    """

    appends: Appends
    begun: int
    ended: int


class History:
    """The commits of a stream, in its ``order``, as those of a leader.

    ``order`` is taken as given for the states of a follower; ``faults_of_order`` compares it with what the leader
    itself holds.
    """

    def __init__(self, order: Sequence[Appends]) -> None:
        self._order = order
        self._lists: dict[int, list[int]] = {}
        self._places: dict[int, list[int]] = {}  # for each element of a list the place in ``order`` of its transaction
        self._place_of: dict[int, int] = {}
        for place, appends in enumerate(order):
            for key, number in appends:
                self._lists.setdefault(key, []).append(number)
                self._places.setdefault(key, []).append(place)
                self._place_of[number] = place

    def faults_of_order(self, confirmed: Collection[Transaction], lists: Lists) -> list[str]:
        """Differences from the ``confirmed`` transactions, which are all that wrote, and from the leader's final
        ``lists``.
        """
        faults = _differences(Counter(each.appends for each in confirmed), Counter(self._order))
        keys = sorted(key for key in lists.keys() | self._lists if list(lists.get(key, ())) != self._lists.get(key, []))
        faults += [f"the list of key {key} is another one than the leader's" for key in keys]
        return faults + self._out_of_time(confirmed)

    def _out_of_time(self, confirmed: Iterable[Transaction]) -> list[str]:
        """Transactions before one that had ended when they began."""
        times = {each.appends: each for each in confirmed}
        faults, latest = [], -1
        for appends in self._order:
            if (found := times.get(appends)) is None:
                continue
            if found.ended < latest:
                faults.append(f"transaction {_named(appends)} had ended before one began that is in front of it")
            latest = max(latest, found.begun)
        return faults

    def faults_of_reads(self, reads: Iterable[Lists]) -> list[str]:
        """The states that the leader never had, and those older than one read before. ``reads`` are the states that one
        reader saw, in order.
        """
        faults: list[str] = []
        before = 0
        for number, state in enumerate(reads):
            place = self._place(state)
            if fault := self._fault(state, place):
                faults.append(f"read {number}: {fault}")
            if place < before:
                faults.append(f"read {number}: it went back from transaction {before} to {place}")
            before = max(before, place)
        return faults

    def is_whole(self, state: Lists) -> bool:
        """Whether ``state`` is the last one."""
        return self._place(state) == len(self._order) and self._fault(state, len(self._order)) is None

    def _place(self, state: Lists) -> int:
        """The number of transactions of which ``state`` seems to be the result."""
        last = (self._place_of.get(each[-1], -1) for each in state.values() if each)
        return max(last, default=-1) + 1

    def _fault(self, state: Lists, place: int) -> str | None:
        """How ``state`` differs from that after the first ``place`` transactions."""
        for key in sorted(state.keys() | self._lists):
            wanted = self._lists.get(key, [])[: bisect_left(self._places.get(key, []), place)]
            found = list(state.get(key, ()))
            if found != wanted:
                at = next((at for at, pair in enumerate(zip(wanted, found, strict=False)) if pair[0] != pair[1]), None)
                at = min(len(wanted), len(found)) if at is None else at
                return (
                    f"after {place} transactions key {key} has {len(wanted)} numbers, {len(found)} were read; "
                    f"from element {at} on {wanted[at : at + 3]} are {found[at : at + 3]}"
                )
        return None


def _differences(wanted: Counter[Appends], found: Counter[Appends]) -> list[str]:
    faults = [f"transaction {_named(each)} is lost" for each in wanted if not found[each]]
    for each, count in found.items():
        if each not in wanted:
            faults.append(f"transaction {_named(each)} is torn, or of another")
        elif count > wanted[each]:
            faults.append(f"transaction {_named(each)} is there {count} times")
    return faults


def _named(appends: Appends) -> str:
    numbers = [f"{key}:{number}" for key, number in appends[:3]]
    return ",".join(numbers) + (",…" if len(appends) > len(numbers) else "")
