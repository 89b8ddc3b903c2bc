"""Random ALTER TABLEs, as SQL and as the resulting table. Pure: the same ``Random`` gives the same.

The server refuses some of them, such as a key on rows that are equal: then the table stays as it is.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.generators.random_columns import RandomColumn, random_column
from tests.generators.random_tables import RandomTable

__all__ = ["INDEXES", "random_alter", "some_index"]

INDEXES = ("i0", "i1", "ж i")
_GENERATED = ("g", "g1")
_CHARSETS = ("utf8mb4", "utf8mb3", "latin1", "cp1251", "gbk", "ascii")
_WHOLE = (
    "FORCE", "ENGINE = InnoDB", "COMMENT 'it''s; new'", "ROW_FORMAT = COMPRESSED", "ROW_FORMAT = DYNAMIC",
    "PARTITION BY KEY () PARTITIONS 3", "PARTITION BY KEY () PARTITIONS 2", "REMOVE PARTITIONING",
    "COALESCE PARTITION 1", "REBUILD PARTITION p0", "DEFAULT CHARACTER SET latin1", "ADD CHECK (1 = 1)",
)  # fmt: skip
_ALGORITHMS = (", ALGORITHM = COPY", ", ALGORITHM = INPLACE", ", ALGORITHM = INSTANT")

Clause = tuple[str, RandomTable]


def random_alter(chance: Random, table: RandomTable, *, vectors: bool) -> Clause:
    """An ALTER TABLE of one clause or several, and the table after it."""
    if chance.random() < 0.15:
        return f"ALTER TABLE `{table.name}` {chance.choice(_WHOLE)}", table
    after, clauses = table, []
    for maker in chance.choices(_MAKERS, k=chance.choice([1, 1, 1, 1, 2, 3])):
        clause, after = maker(chance, after, vectors)
        clauses.append(clause)
    algorithm = chance.choice(_ALGORITHMS) if chance.random() < 0.3 else ""
    return f"ALTER TABLE `{table.name}` {', '.join(clauses)}{algorithm}", after


def some_index(chance: Random, table: RandomTable, *, primary: bool = False) -> str:
    """The parts that an index of the table can have, in brackets; no primary key is on an expression."""
    column = chance.choice([column for column in table.columns if column.index] or table.columns)
    if not column.index or (not primary and chance.random() < 0.1):
        return f"((LENGTH(`{column.name}`)))"
    others = [other.index for other in table.columns if other.index and other is not column]
    parts = [column.index, *chance.sample(others, min(len(others), chance.randint(0, 2)))]
    return f"({', '.join(part + chance.choice(['', '', ' DESC']) for part in parts)})"


def _new_column(chance: Random, vectors: bool) -> RandomColumn:
    name = chance.choice(["c", "C", "ж", "a b", "order"]) + str(chance.randrange(100))
    return random_column(chance, name, vectors=vectors)


def _place(chance: Random, table: RandomTable, column: RandomColumn) -> Clause:
    """The place of a column, and the table with it there."""
    others = [other for other in table.columns if other.name != column.name]
    at = chance.randint(0, len(others))
    after = replace(table, columns=(*others[:at], column, *others[at:]))
    if at == len(others):
        return "", after
    return f" AFTER `{others[at - 1].name}`" if at else " FIRST", after


def _add(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    column = _new_column(chance, vectors)
    nullable = chance.random() < 0.6
    text = column.definition(nullable=nullable)
    if chance.random() < 0.4:
        text += f" DEFAULT ({column.values(chance)})"
    if chance.random() < 0.15:
        text += " INVISIBLE"
    place, after = _place(chance, table, column)
    return f"ADD COLUMN {text}{place}", _with_null(after, column.name, nullable)


def _drop(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    if len(table.columns) < 2:
        return _add(chance, table, vectors)
    column = chance.choice(table.columns)
    after = replace(table, columns=tuple(other for other in table.columns if other is not column))
    return f"DROP COLUMN `{column.name}`", after


def _retype(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    old = chance.choice(table.columns)
    # ALTER makes a VECTOR of any bytes of a BLOB or GEOMETRY: such a row can't be inserted elsewhere.
    new, nullable = _new_column(chance, vectors and old.type.startswith("VECTOR")), chance.random() < 0.6
    kept = chance.random() < 0.5
    new = new.renamed(old.name if kept else new.name)
    moved = replace(table, columns=tuple(new if other is old else other for other in table.columns))
    place, after = _place(chance, moved, new) if chance.random() < 0.3 else ("", moved)
    words = f"MODIFY COLUMN {new.definition(nullable=nullable)}"
    if not kept:
        words = f"CHANGE COLUMN `{old.name}` {new.definition(nullable=nullable)}"
    return words + place, _with_null(after, new.name, nullable)


def _reorder(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    column = chance.choice(table.columns)
    place, after = _place(chance, table, column)
    nullable = column.name in table.nullable
    return f"MODIFY COLUMN {column.definition(nullable=nullable)}{place}", after


def _rename(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    if len(table.columns) > 1 and chance.random() < 0.4:
        one, two = chance.sample(table.columns, 2)
        names = {one.name: two.name, two.name: one.name}
    else:
        names = {chance.choice(table.columns).name: _new_column(chance, vectors).name}
    after = replace(
        table,
        columns=tuple(column.renamed(names.get(column.name, column.name)) for column in table.columns),
        nullable=frozenset(names.get(name, name) for name in table.nullable),
    )
    return ", ".join(f"RENAME COLUMN `{old}` TO `{new}`" for old, new in names.items()), after


def _default(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    column = chance.choice(table.columns)
    change = chance.choice([f"SET DEFAULT ({column.values(chance)})", "DROP DEFAULT", "SET INVISIBLE", "SET VISIBLE"])
    return f"ALTER COLUMN `{column.name}` {change}", table


def _generated(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    if table.generated and chance.random() < 0.4:
        name = chance.choice(sorted(table.generated))
        return f"DROP COLUMN `{name}`", replace(table, generated=table.generated - {name})
    name = chance.choice(_GENERATED)
    measured = [column for column in table.columns if column.in_json]
    of = chance.choice(measured or table.columns)
    after = replace(table, generated=table.generated | {name})
    return f"ADD COLUMN `{name}` INT AS (LENGTH(`{of.name}`)) {chance.choice(['STORED', 'VIRTUAL'])}", after


def _key(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    others = sorted(table.keys - {"PRIMARY"})
    if "PRIMARY" in table.keys and chance.random() < 0.3:
        if chance.random() < 0.5:
            return f"DROP PRIMARY KEY, ADD PRIMARY KEY {some_index(chance, table, primary=True)}", table
        return "DROP PRIMARY KEY", replace(table, keys=table.keys - {"PRIMARY"})
    if others and chance.random() < 0.5:
        name, new = chance.choice(others), chance.choice(INDEXES)
        without = table.keys - {name}
        return chance.choice([
            (f"DROP INDEX `{name}`", replace(table, keys=without)),
            (f"RENAME INDEX `{name}` TO `{new}`", replace(table, keys=without | {new})),
            (f"ALTER INDEX `{name}` {chance.choice(['INVISIBLE', 'VISIBLE'])}", table),
        ])  # fmt: skip
    if "PRIMARY" not in table.keys and chance.random() < 0.5:
        return f"ADD PRIMARY KEY {some_index(chance, table, primary=True)}", replace(
            table, keys=table.keys | {"PRIMARY"}
        )
    name, word = chance.choice(INDEXES), chance.choice(["UNIQUE KEY", "INDEX", "INDEX"])
    return f"ADD {word} `{name}` {some_index(chance, table)}", replace(table, keys=table.keys | {name})


def _charset(chance: Random, table: RandomTable, vectors: bool) -> Clause:
    return f"CONVERT TO CHARACTER SET {chance.choice(_CHARSETS)}", table


def _with_null(table: RandomTable, name: str, nullable: bool) -> RandomTable:
    return replace(table, nullable=table.nullable | {name} if nullable else table.nullable - {name})


_MAKERS: list[Callable[[Random, RandomTable, bool], Clause]] = [
    *[_add] * 4, *[_drop] * 3, *[_retype] * 5, _reorder, *[_rename] * 2, *[_default] * 2, *[_generated] * 2,
    *[_key] * 5, _charset,
]  # fmt: skip
