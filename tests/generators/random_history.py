"""Random histories of a database: tables are created, changed, swapped and dropped, with rows in between.
Pure, as SQL.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from tests.generators.random_alters import INDEXES, random_alter, some_index
from tests.generators.random_tables import LAX, RandomTable, random_table

__all__ = ["Deed", "RandomHistory"]

_NAMES = ("t0", "t1", "t2", "a b", "Group", "таблица")
_VIEWS = ("v0", "v1")
_SETTINGS = (
    LAX, LAX, f"{LAX}, sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')",
    f"{LAX}, sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES'", "SET SESSION time_zone = '-03:30'",
    "SET SESSION binlog_transaction_compression = ON", "SET SESSION binlog_transaction_compression = OFF",
    "SET SESSION sql_generate_invisible_primary_key = ON", "SET SESSION sql_generate_invisible_primary_key = OFF",
    "FLUSH BINARY LOGS", "SET SESSION foreign_key_checks = 0", "SET SESSION foreign_key_checks = 1",
)  # fmt: skip


@dataclass(frozen=True)
class Deed:
    """Statements of one session, in order; with ``ddl``, the last one changes objects.

    ``tables`` are the tables after the server has accepted the last one.
    """

    statements: list[str]
    tables: dict[str, RandomTable]
    ddl: bool = True


class RandomHistory:
    """Random deeds, one after the other, on up to six tables; the caller that executes a deed keeps ``tables`` up to
    date.

    ``vectors``: the server has VECTOR.
    """

    def __init__(self, chance: Random, *, vectors: bool) -> None:
        self.tables: dict[str, RandomTable] = {}
        self._chance = chance
        self._vectors = vectors
        self._transactions = 0

    def next(self) -> Deed:
        """Changes of rows and of tables, in random order."""
        if len(self.tables) < 2:
            return self._create()
        roll = self._chance.random()
        if roll < 0.05:
            return Deed([self._chance.choice(_SETTINGS)], self.tables, ddl=False)
        if roll < 0.3:
            return Deed(list(self._rows()), self.tables, ddl=False)
        return self._chance.choice(self._transactional() if roll < 0.4 else self._statements())()

    def _transactional(self) -> list[Callable[[], Deed]]:
        return [self._transaction] * 4 + [self._xa, self._temporary]

    def _statements(self) -> list[Callable[[], Deed]]:
        return [
            *[self._alter] * 14, *[self._create] * 2, self._like, *[self._select] * 2, *[self._rename] * 3,
            *[self._truncate] * 2, *[self._drop] * 4, *[self._index] * 3, *[self._view] * 2, self._database,
        ]  # fmt: skip

    def _table(self) -> RandomTable:
        return self.tables[self._chance.choice(sorted(self.tables))]

    def _name(self) -> str:
        """A table's name, mostly a free one."""
        free = [name for name in _NAMES if name not in self.tables]
        return self._chance.choice(free if free and self._chance.random() < 0.9 else _NAMES)

    def _rows(self) -> Iterator[str]:
        table = self._table()
        if self._chance.random() < 0.6:
            yield from table.inserts(self._chance, rows=self._chance.randint(1, 12))
        else:
            yield from table.changes(self._chance, statements=self._chance.randint(1, 3))
        if self._chance.random() < 0.2:
            (insert,) = table.inserts(self._chance, rows=1)
            yield insert.replace("INSERT IGNORE", "REPLACE")
        if self._chance.random() < 0.1:
            few = f"RAND({self._chance.randrange(1000)}) < 0.02"
            yield f"DELETE a, b FROM `{table.name}` a JOIN `{self._table().name}` b WHERE {few}"

    def _transaction(self) -> Deed:
        """Rows of several tables, rolled back in part or as a whole, or ended by a statement that commits."""
        statements = ["BEGIN", *self._rows(), *self._rows()]
        if self._chance.random() < 0.5:
            statements += ["SAVEPOINT s", *self._rows(), "ROLLBACK TO s", *self._rows()]
        if self._chance.random() < 0.2:
            ending = self._alter()
            return Deed([*statements, *ending.statements], ending.tables)
        end = "ROLLBACK" if self._chance.random() < 0.2 else "COMMIT"
        return Deed([*statements, end], self.tables, ddl=False)

    def _xa(self) -> Deed:
        self._transactions += 1
        xid = f"X'{self._transactions:04x}ff'"
        end = self._chance.choice([f"XA COMMIT {xid}", f"XA COMMIT {xid}", f"XA ROLLBACK {xid}"])
        statements = [f"XA START {xid}", *self._rows(), *self._rows(), f"XA END {xid}", f"XA PREPARE {xid}", end]
        if self._chance.random() < 0.2:
            statements[-2:] = [f"XA COMMIT {xid} ONE PHASE"]
        return Deed(statements, self.tables, ddl=False)

    def _temporary(self) -> Deed:
        statements = ["CREATE TEMPORARY TABLE passing (i INT)", "INSERT INTO passing VALUES (1)", *self._rows()]
        return Deed([*statements, "DROP TEMPORARY TABLE passing"], self.tables, ddl=False)

    def _create(self) -> Deed:
        name = self._name()
        table = random_table(self._chance, name, vectors=self._vectors)
        if self._chance.random() < 0.3:
            return self._deed(f"CREATE TABLE IF NOT EXISTS {table.definition.removeprefix('CREATE TABLE ')}", [], table)
        return self._deed(table.definition, [], table)

    def _like(self) -> Deed:
        table, name = self._table(), self._name()
        return self._deed(f"CREATE TABLE `{name}` LIKE `{table.name}`", [], replace(table, name=name))

    def _select(self) -> Deed:
        table, name = self._table(), self._name()
        columns = tuple(self._chance.sample(table.columns, self._chance.randint(1, len(table.columns))))
        names = ", ".join(f"`{column.name}`" for column in columns)
        key = " (UNIQUE KEY `u` (" + columns[0].index + "))" if columns[0].index and self._chance.random() < 0.3 else ""
        word = self._chance.choice(["", "", "IGNORE ", "REPLACE "])
        text = f"CREATE TABLE `{name}`{key} {word}SELECT {names} FROM `{table.name}`"
        new = RandomTable(name, columns, table.nullable, text, frozenset({"u"} if key else ()))
        return self._deed(text, [], new)

    def _alter(self) -> Deed:
        table = self._table()
        text, after = random_alter(self._chance, table, vectors=self._vectors)
        if " PARTITION" not in text and self._chance.random() < 0.1:
            after = replace(after, name=self._name())
            return self._deed(f"{text}, RENAME TO `{after.name}`", [table.name], after)
        return self._deed(text, [table.name], after)

    def _rename(self) -> Deed:
        one, two = self._chance.sample(sorted(self.tables), 2)
        if self._chance.random() < 0.5:
            swap = f"RENAME TABLE `{one}` TO `between`, `{two}` TO `{one}`, `between` TO `{two}`"
            swapped = [replace(self.tables[one], name=two), replace(self.tables[two], name=one)]
            return self._deed(swap, [one, two], *swapped)
        new = self._name()
        moves = f"RENAME TABLE `{one}` TO `{new}`, `{two}` TO `{one}`"
        return self._deed(moves, [one, two], replace(self.tables[one], name=new), replace(self.tables[two], name=one))

    def _truncate(self) -> Deed:
        return self._deed(f"TRUNCATE {self._chance.choice(['', 'TABLE '])}`{self._table().name}`", [])

    def _drop(self) -> Deed:
        names = self._chance.sample(sorted(self.tables), self._chance.randint(1, 2))
        if self._chance.random() < 0.3:
            return self._deed(f"DROP TABLE IF EXISTS `nowhere`, {', '.join(f'`{name}`' for name in names)}", names)
        return self._deed(f"DROP TABLE {', '.join(f'`{name}`' for name in names)}", names)

    def _index(self) -> Deed:
        table, name = self._table(), self._chance.choice(INDEXES)
        old = sorted(table.keys - {"PRIMARY"})
        if old and self._chance.random() < 0.4:
            name = self._chance.choice(old)
            after = replace(table, keys=table.keys - {name})
            return self._deed(f"DROP INDEX `{name}` ON `{table.name}`", [table.name], after)
        word, parts = self._chance.choice(["", "UNIQUE "]), some_index(self._chance, table)
        after = replace(table, keys=table.keys | {name})
        return self._deed(f"CREATE {word}INDEX `{name}` ON `{table.name}` {parts}", [table.name], after)

    def _view(self) -> Deed:
        name, table = self._chance.choice(_VIEWS), self._table()
        select = f"VIEW `{name}` AS SELECT `{self._chance.choice(table.columns).name}` FROM `{table.name}`"
        words = ["CREATE OR REPLACE " + select, "ALTER " + select, f"DROP VIEW `{name}`", f"DROP VIEW IF EXISTS {name}"]
        return self._deed(self._chance.choice(words), [])

    def _database(self) -> Deed:
        return self._deed(f"ALTER DATABASE CHARACTER SET {self._chance.choice(['utf8mb4', 'latin1', 'ucs2'])}", [])

    def _deed(self, statement: str, gone: list[str], *come: RandomTable) -> Deed:
        """The tables that are ``gone`` and have ``come`` after the server has accepted the statement."""
        left = {name: table for name, table in self.tables.items() if name not in gone}
        # CREATE … IF NOT EXISTS leaves an existing table as it is.
        return Deed([statement], {table.name: table for table in come} | left)
