"""Random histories of a leader and a follower, message by message: any state that an audit may meet."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.generators.streams import Part, Stream, Table, checkpoint, follower_stream, query, replicate

_NAMES = ("a", "b", "c")
_UPGRADED = 40  # from this sequence of the leader on, the GTIDs of statements are numbered


@dataclass
class _Recorded(Stream):
    """A stream that remembers the parts of its transactions."""

    parts: list[tuple[Part, ...]] = field(default_factory=list)

    def transaction(self, *parts: Part, **options: Any) -> None:
        super().transaction(*parts, **options)
        self.parts.append(parts)


class RandomStreams:
    """Both streams, and the counts of messages (leader's, follower's) at which a reader may have looked, in order.

    ``alters``: some statements are ALTER TABLE. ``unlogged`` is how often a row changed before, without a record. Each
    table has up to ``keys`` rows. From step ``settled`` on no statement runs; then all tables exist.
    """

    def __init__(
        self,
        seed: str,
        *,
        steps: int,
        alters: bool = True,
        unlogged: float = 0.0,
        settled: int | None = None,
        keys: int = 9,
    ) -> None:
        self._random, self._unlogged, self._keys = random.Random(seed), unlogged, keys
        self._settled = steps if settled is None else settled
        self._statements = ["truncate", "recreate", "rename", "swap", *(["alter"] if alters else [])]
        self.leader, self.follower = _Recorded(), follower_stream()
        self.moments: list[tuple[int, int]] = []
        self._shapes: dict[str, Table] = {}
        self._rows: dict[str, dict[int, str]] = {}
        self._applied, self._last = 0, -1
        self.leader.transaction(query("CREATE DATABASE db", "db", ("CreateDatabase", "db")))
        for name in _NAMES:
            self._create(name)
        for at in range(steps):
            if at == settled:
                self._fill()
            self._step()

    def cuts(self, count: int) -> list[tuple[int, int]]:
        """A moment in each of so many parts of the whole time, the last one last.

        Followers' transactions may be cut in two.
        """
        ends = [len(self.moments) * part // count for part in range(count)]
        chosen = [self._random.randrange(*part) for part in pairwise(ends)]
        cuts = [self.moments[at] for at in chosen]
        # A part of the follower's next messages may be there too; the leader's part of them is.
        later = [self.moments[at + 1] for at in chosen]
        cuts = [(after[0], self._random.randint(cut[1], after[1])) for cut, after in zip(cuts, later, strict=True)]
        return [*cuts, self.moments[-1]]

    def _step(self) -> None:
        pick = self._random.random()
        if pick < 0.5 or (pick < 0.62 and self._is_settled):
            self._change()
        elif pick < 0.62:
            self._define()
        elif pick < 0.94:
            self._apply()
        else:
            self._intrude()
        self.moments.append((len(self.leader.messages), len(self.follower.messages)))

    @property
    def _is_settled(self) -> bool:
        return len(self.moments) >= self._settled

    def _fill(self) -> None:
        for name, shape in self._shapes.items():
            new = {key: self._random.choice("xyz") for key in range(self._keys) if key not in self._rows[name]}
            self._rows[name] |= new
            self.leader.transaction(shape.add(*(_row(shape, *each) for each in new.items())))

    def _create(self, name: str) -> None:
        self._shapes[name] = Table(f"db/{name}", ["id", "v"], ["id"] if self._random.random() < 0.7 else None)
        self._rows[name] = {}
        self.leader.transaction(query("CREATE TABLE", "db", ("CreateTable", f"db/{name}")))

    def _change(self) -> None:
        self.leader.transaction(*(self._part() for _ in range(self._random.randint(1, 3))))

    def _part(self) -> Part:
        name = self._random.choice(sorted(self._shapes))
        shape, rows, key, value = (
            self._shapes[name],
            self._rows[name],
            self._random.randrange(self._keys),
            self._random.choice("xyz"),
        )
        if key not in rows:
            rows[key] = value
            return shape.add(_row(shape, key, value))
        if self._random.random() < self._unlogged:
            rows[key] = self._random.choice("xyz")
        before, pick = _row(shape, key, rows[key]), self._random.random()
        if pick < 0.4:
            del rows[key]
            return shape.delete(before)
        if pick < 0.55 and (free := set(range(self._keys)) - rows.keys()):
            del rows[key]
            key = self._random.choice(sorted(free))
        rows[key] = value
        return shape.update((before, _row(shape, key, value)))

    def _define(self) -> None:
        name = self._random.choice(sorted(self._shapes))
        shape, action = self._shapes[name], self._random.choice(self._statements)
        if action == "truncate":
            self._rows[name] = {}
            self.leader.transaction(query("TRUNCATE", "db", ("TruncateTable", shape.name)))
        elif action == "recreate":
            self.leader.transaction(query("DROP TABLE", "db", ("DropTable", shape.name)))
            self._create(name)
        elif action == "alter":
            self._shapes[name] = Table(shape.name, [*shape.columns, f"c{len(shape.columns)}"], shape.key)
            self.leader.transaction(query("ALTER TABLE", "db", ("AlterTable", shape.name)))
        elif action == "rename":
            self.leader.transaction(query("RENAME TABLE", "db", ("RenameTable", shape.name, f"db/{name}r")))
            self._move(name, f"{name}r")
        else:
            self._swap(name, self._random.choice(sorted(self._shapes)))

    def _swap(self, one: str, two: str) -> None:
        moves = [
            ("RenameTable", f"db/{old}", f"db/{new}") for old, new in ((one, "between"), (two, one), ("between", two))
        ]
        if one != two:
            self.leader.transaction(query("RENAME TABLE", "db", *moves))
            for _, old, new in moves:
                self._move(old.removeprefix("db/"), new.removeprefix("db/"))

    def _move(self, old: str, new: str) -> None:
        shape = self._shapes.pop(old)
        self._shapes[new] = Table(f"db/{new}", shape.columns, shape.key)
        self._rows[new] = self._rows.pop(old)

    def _apply(self) -> None:
        """The consumer's next few transactions; now and then one is lost."""
        waiting = self.leader.parts[self._applied :]
        for parts in waiting[: self._random.randint(1, 6)]:
            if self._random.random() < 0.03 and "Query" not in parts[0]["operation"]:
                self.follower.transaction(checkpoint(self._last, self._last + len(parts)))
                self._last += len(parts)
            else:
                self._last = replicate(self.follower, parts, before=self._last, numbered=self._last > _UPGRADED)
            self._applied += 1

    def _intrude(self) -> None:
        """A foreign write to the follower: rows, or a statement."""
        name, pick = self._random.choice(sorted(self._shapes)), self._random.random()
        if pick < 0.25 and "alter" in self._statements and not self._is_settled:
            self.follower.transaction(query("ALTER TABLE by hand", "db", ("AlterTable", f"db/{name}")))
        elif pick < 0.6 and self._rows[name]:
            shape, (key, value) = self._shapes[name], self._random.choice(sorted(self._rows[name].items()))
            self.follower.transaction(shape.update((_row(shape, key, value), _row(shape, key, "by hand"))))
        else:
            self.follower.transaction(Table("db/a", ["id", "v"], ["id"]).add((self._random.randrange(90, 99), "ghost")))


def _row(shape: Table, key: int, value: str) -> Sequence[object]:
    return (key, value, *(None for _ in shape.columns[2:]))
