"""Random tables and changes of their rows, as SQL. Pure: the same ``Random`` gives the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.generators.random_columns import RandomColumn, random_column

__all__ = ["LAX", "RandomTable", "random_table"]

# Values that the server accepts only in some modes: zero dates, error values of ENUM, texts cut to fit.
LAX = "SET SESSION time_zone = '+00:00', innodb_strict_mode = 0, sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"


@dataclass(frozen=True)
class RandomTable:
    """A table with its columns; ``definition`` is the statement that creates it.

    ``keys`` are the names of its keys, ``generated`` are the columns that get no value.
    """

    name: str
    columns: tuple[RandomColumn, ...]
    nullable: frozenset[str]
    definition: str
    keys: frozenset[str] = frozenset()
    generated: frozenset[str] = frozenset()

    def inserts(self, chance: Random, *, rows: int) -> Iterator[str]:
        """Statements that insert ``rows`` rows, fewer if a key is taken."""
        names = ",".join(f"`{column.name}`" for column in self.columns)
        while rows > 0:
            batch = min(rows, chance.randint(1, 8))
            texts = [f"({','.join(self.value(chance, column) for column in self.columns)})" for _ in range(batch)]
            yield f"INSERT IGNORE INTO `{self.name}` ({names}) VALUES {','.join(texts)}"
            rows -= batch

    def changes(self, chance: Random, *, statements: int) -> Iterator[str]:
        """Updates and deletes of rows that the server picks."""
        for _ in range(statements):
            some = f"ORDER BY RAND({chance.randrange(1000)}) LIMIT {chance.randint(1, 4)}"
            if chance.random() < 0.3:
                yield f"DELETE FROM `{self.name}` {some}"
            else:
                changed = chance.sample(self.columns, chance.randint(1, min(3, len(self.columns))))
                texts = [f"`{column.name}` = {self.value(chance, column)}" for column in changed]
                yield f"UPDATE IGNORE `{self.name}` SET {','.join(texts)} {some}"

    def value(self, chance: Random, column: RandomColumn) -> str:
        if column.name in self.nullable and chance.random() < 0.2:
            return "NULL"
        earlier = [other for other in self.columns[: self.columns.index(column)] if other.in_json]
        if column.type == "JSON" and earlier and chance.random() < 0.4:
            # A member takes the type of its column, which for some types is the only way to get them into a document.
            members = chance.sample(earlier, chance.randint(1, min(4, len(earlier))))
            return f"JSON_ARRAY({','.join(f'`{member.name}`' for member in members)})"
        return column.values(chance)


def random_table(chance: Random, name: str, *, vectors: bool) -> RandomTable:
    """A table of up to twelve columns with a primary key, a unique key or none; ``vectors``: the server has VECTOR."""
    columns = tuple(random_column(chance, f"c{place}", vectors=vectors) for place in range(chance.randint(1, 12)))
    candidates = [column for column in columns if column.index]
    key = chance.sample(candidates, min(len(candidates), chance.randint(0, 3)))
    nullable = frozenset(column.name for column in columns if column not in key and chance.random() < 0.7)
    parts = []
    for column in columns:
        hidden = " INVISIBLE" if len(columns) > 1 and column is columns[-1] and chance.random() < 0.2 else ""
        parts.append(column.definition(nullable=column.name in nullable) + hidden)
    measured = [column for column in columns if column.in_json]
    generated = frozenset({"g"} if measured and chance.random() < 0.3 else ())
    if generated:
        of = chance.choice(measured)
        parts.append(f"`g` INT AS (LENGTH(`{of.name}`)) {chance.choice(['STORED', 'VIRTUAL'])}")
    word = chance.choice(["PRIMARY KEY", "PRIMARY KEY", "UNIQUE KEY `u`"])
    if key:
        parts.append(f"{word} ({','.join(column.index for column in key)})")
    keys = frozenset({"u" if "`u`" in word else "PRIMARY"} if key else ())
    return RandomTable(name, columns, nullable, f"CREATE TABLE `{name}` ({', '.join(parts)})", keys, generated)
