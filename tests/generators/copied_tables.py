"""Random histories of tables that are copied into the stream while they change, and a follower that is fed from it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.generators.streams import Part, Stream, Table, checkpoint, follower_stream, query, replicate

Row = tuple[object, ...]

_KEYS = 12


@dataclass
class Copied:
    """A table on both servers; ``order`` is that of its keys. ``at`` is the place of its copy in the table, None
    without one.

    ``whole``: the stream contains all of its rows. ``altered``: an ALTER came since then. ``stale``: one came before
    its last copy.
    """

    name: str
    order: list[int]
    shape: Table
    leader: dict[int, Row] = field(default_factory=dict)
    follower: dict[int, Row] = field(default_factory=dict)
    at: int | None = None
    whole: bool = True
    altered: bool = False
    stale: bool = False


class CopiedTables:
    """Both streams, with ``tables`` tables and ``steps`` steps for each; the first ``left`` are being copied.

    Half of the tables, by number, are older than the leader's stream. ``moments`` are the counts of messages (leader's,
    follower's) at which the follower had applied all.
    """

    def __init__(self, seed: str, *, tables: int, steps: int, left: int = 0) -> None:
        self.random = random.Random(seed)
        self.leader, self.follower = Stream(), follower_stream()
        self.last, self.copies, self.intrusions, self.applied = -1, 0, 0, ""
        self.moments: list[tuple[int, int]] = []
        self.tables = [self._new(f"t{number}", old=number % 2 == 0) for number in range(tables)]
        for _ in range(steps * tables):
            self._step(self.random.choice(self.tables))
            self.moments.append((len(self.leader.messages), len(self.follower.messages)))
        for number, table in enumerate(self.tables):
            self._finish(table, complete=number >= left)

    def _new(self, name: str, *, old: bool) -> Copied:
        order = self.random.sample(range(_KEYS), _KEYS)
        table = Copied(name, order, Table(f"db/{name}", ["id", "v"], ["id"]))
        if old:
            table.leader = {key: (key, "old") for key in order[:7]}
            table.whole = False
        else:
            self._state(query("CREATE TABLE", "db", ("CreateTable", f"db/{name}")))
        return table

    def _step(self, table: Copied) -> None:
        if not table.whole and table.at is None:
            self.copy(table)
            return
        pick = self.random.random()
        if pick < 0.45:
            self.change(table)
        elif pick < 0.8 and (table.at is not None or pick < 0.52):
            self.copy(table)
        elif 0.8 <= pick < 0.86 and table.at is None:
            self.intrude(table)
            self.copy(table)
        elif pick >= 0.95:
            self._define(table)

    def _finish(self, table: Copied, *, complete: bool) -> None:
        if not complete and (table.at is None or table.whole):
            self.copy(table, whole=False)
        while complete and not table.whole:
            self.copy(table)

    def _state(self, *parts: Part) -> None:
        """A statement, on both servers."""
        copying = "copying" in parts[0]
        self.leader.transaction(*parts, gtid=self._id() if copying else "")
        ran = [{name: each for name, each in part.items() if name != "copying"} for part in parts]
        self.last = replicate(self.follower, ran, before=self.last)

    def _id(self) -> str:
        self.copies += 1
        return f"copy:33333333-3333-3333-3333-333333333333:{self.copies}"

    def _log(self, table: Copied, part: Part, *, then: dict[int, Row | None], gtid: str = "") -> None:
        """A record of the leader, and the follower's log of it: the rows that it did not have already."""
        self.leader.transaction(part, gtid=gtid)
        # The checkpoint names a transaction of the leader, and a chunk is none.
        self.applied = self.applied if gtid else f"{self.leader.uuid}:{self.leader.commits}"
        logged = [part for key, row in then.items() for part in _made(table, key, row)]
        self.follower.transaction(*logged, checkpoint(self.last, self.last + 1, names=self.applied))
        self.last += 1

    def change(self, table: Copied) -> None:
        """One row is inserted, changed, deleted or gets another key."""
        key, value, rows = self.random.randrange(_KEYS), self.random.choice("xyz"), table.leader
        before, row = rows.get(key), (key, value, *("v" for _ in table.shape.columns[2:]))
        free = sorted(set(range(_KEYS)) - rows.keys())
        then: dict[int, Row | None] = {key: row}
        if before is None:
            part = table.shape.add(row)
        elif (pick := self.random.random()) < 0.4:
            part, then = table.shape.delete(before), {key: None}
        elif pick < 0.6 and free:
            row = (self.random.choice(free), *row[1:])
            part, then = table.shape.update((before, row)), {key: None, int(str(row[0])): row}
        else:
            part = table.shape.update((before, row))
        _put(rows, then)
        self._log(table, part | ({"copying": True} if table.at is not None else {}), then=then)

    def copy(self, table: Copied, *, whole: bool | None = None) -> None:
        """The next chunk of the table's copy, which may begin with it, or begin again; ``whole`` is whether
        it ends it.
        """
        if table.at is None and (not table.leader or not table.whole or self.random.random() < 0.3):
            create = query("CREATE TABLE IF NOT EXISTS", "db", ("CreateTable", f"db/{table.name}"))
            self._state(create | {"copying": True})
        if table.at is None or self.random.random() < 0.1:
            table.at, table.whole, table.stale = 0, False, table.altered or table.stale
            table.altered = False
        after = None if table.at == 0 else (table.order[table.at - 1],)
        end = min(_KEYS, table.at + self.random.randint(1, 5)) if whole is None else _KEYS if whole else table.at + 1
        ends = end == _KEYS
        within = table.order[table.at : end]
        named = [key for key in table.leader if key in within or self.random.random() < 0.1]
        self.random.shuffle(named)
        part = table.shape.chunk(
            after, None if ends else (table.order[end - 1],), *(table.leader[key] for key in named)
        )
        then = {key: table.leader.get(key) for key in {*within, *named}}
        self._log(table, part, then=then, gtid=self._id())
        table.at, table.whole = (None, True) if ends else (end, False)

    def intrude(self, table: Copied, key: int | None = None) -> None:
        """A foreign write changes a row on the follower, or inserts one."""
        key = self.random.randrange(_KEYS) if key is None else key
        row = (key, "by hand", *("v" for _ in table.shape.columns[2:]))
        parts = list(_made(table, key, row))
        self.follower.transaction(*parts)
        self.intrusions += bool(parts)

    def _define(self, table: Copied) -> None:
        action = self.random.choice(["truncate", "drop", "rename", "alter"])
        path = table.shape.name
        if action == "truncate":
            self._state(query("TRUNCATE", "db", ("TruncateTable", path)))
        elif action == "drop":
            self._state(query("DROP TABLE", "db", ("DropTable", path)))
            self._state(query("CREATE TABLE", "db", ("CreateTable", path)))
        elif action == "rename":
            table.name += "r"
            self._state(query("RENAME TABLE", "db", ("RenameTable", path, f"db/{table.name}")))
            table.shape = Table(f"db/{table.name}", table.shape.columns, table.shape.key)
        else:
            self._alter(table)
        if action in ("truncate", "drop"):
            table.leader, table.follower, table.whole, table.altered, table.stale = {}, {}, True, False, False
        table.at = None

    def _alter(self, table: Copied) -> None:
        """A column with a default, which no server logs for the existing rows."""
        table.shape = Table(table.shape.name, [*table.shape.columns, f"c{len(table.shape.columns)}"], table.shape.key)
        self._state(query("ALTER TABLE", "db", ("AlterTable", table.shape.name)))
        for rows in (table.leader, table.follower):
            rows |= {key: (*row, "by default") for key, row in rows.items()}
        table.altered = True


def _put(rows: dict[int, Row], then: dict[int, Row | None]) -> None:
    for key, row in then.items():
        rows.pop(key, None)
        if row is not None:
            rows[key] = row


def _made(table: Copied, key: int, row: Row | None) -> Iterator[Part]:
    """The follower's record that gives a row this content; None if it has it."""
    there: Sequence[object] | None = table.follower.get(key)
    if there == row:
        return
    if there is None and row is not None:
        yield table.shape.add(row)
    elif there is not None:
        yield table.shape.delete(there) if row is None else table.shape.update((there, row))
    _put(table.follower, {key: row})
