"""Random work of several sessions on a database, wider than ``random_history``, which is part of it. Pure, as SQL."""

from collections.abc import Sequence
from random import Random

from tests.generators.native.families import family_made, family_used
from tests.generators.native.objects import random_objects
from tests.generators.native.sessions import random_setting
from tests.generators.native.writes import random_write
from tests.generators.random_history import Deed, RandomHistory
from tests.generators.random_tables import RandomTable

__all__ = ["NativeHistory"]


class NativeHistory:
    """Random deeds, one after the other; the caller that executes a deed keeps ``tables`` up to date. ``vectors``: the
    server has VECTOR.
    """

    def __init__(self, chance: Random, *, families: Sequence[str], files: list[str], vectors: bool) -> None:
        self._chance = chance
        self._plain = RandomHistory(chance, vectors=vectors)
        self._families = families
        self._files = files
        self._number = 0

    @property
    def tables(self) -> dict[str, RandomTable]:
        return self._plain.tables

    @tables.setter
    def tables(self, tables: dict[str, RandomTable]) -> None:
        self._plain.tables = tables

    def next(self) -> Deed:
        """A deed of any kind."""
        self._number += 1
        if self._number <= len(self._families):
            return self._same(family_made(self._chance, self._families[self._number - 1]))
        roll = self._chance.random()
        if roll < 0.3 or len(self.tables) < 2:
            return self._plain.next()
        if roll < 0.45:
            return self._same([random_setting(self._chance)])
        if roll < 0.6:
            return self._same(self._bracketed([random_write(self._chance, self.tables) for _ in range(2)]))
        if roll < 0.75:
            return self._same(random_objects(self._chance, self.tables, self._number))
        if roll < 0.78:
            return self._same([self._load()])
        family = self._chance.choice(self._families)
        statements = [each for _ in range(self._chance.randint(1, 5)) for each in family_used(self._chance, family)]
        return self._same(statements)

    def _bracketed(self, statements: list[str]) -> list[str]:
        """The statements, in a transaction or without one."""
        before, after = self._chance.choice(
            [
                ([], []),
                ([], []),
                (["BEGIN"], ["COMMIT"]),
                (["SET autocommit = 0"], ["COMMIT", "SET autocommit = 1"]),
                (["START TRANSACTION WITH CONSISTENT SNAPSHOT"], ["ROLLBACK"]),
                (["BEGIN", "SAVEPOINT a"], ["ROLLBACK TO a", *statements, "COMMIT"]),
                (
                    ["BEGIN"],
                    [
                        "SAVEPOINT a",
                        "SAVEPOINT b",
                        *statements,
                        "RELEASE SAVEPOINT a",
                        "COMMIT AND CHAIN",
                        *statements,
                        "COMMIT",
                    ],
                ),
                (
                    [f"XA START 'n{self._number}'"],
                    [f"XA END 'n{self._number}'", f"XA PREPARE 'n{self._number}'", f"XA COMMIT 'n{self._number}'"],
                ),
            ]
        )
        return [*before, *statements, *after]

    def _load(self) -> str:
        """LOAD DATA of a file, which must be on the client's side; the file has no values for a geometry."""
        flat = [name for name, table in self.tables.items() if all(each.type != "GEOMETRY" for each in table.columns)]
        if not flat:
            return "DO 1"  # no LOAD DATA
        table = self.tables[self._chance.choice(sorted(flat))]
        word, charset = (
            self._chance.choice(["", "IGNORE", "REPLACE"]),
            self._chance.choice(["utf8mb4", "latin1", "binary", "cp1251"]),
        )
        file = self._chance.choice(self._files)
        return f"LOAD DATA LOCAL INFILE '{file}' {word} INTO TABLE `{table.name}` CHARACTER SET {charset}"

    def _same(self, statements: list[str]) -> Deed:
        return Deed(statements, self.tables, ddl=False)
