"""Random statements that write rows of any random table, in all of MySQL's forms. Pure, as SQL."""

from collections.abc import Mapping
from random import Random

from tests.generators.random_tables import RandomTable

__all__ = ["random_write"]


def random_write(chance: Random, tables: Mapping[str, RandomTable]) -> str:
    """A statement on one of the tables, or on two."""
    one, two = (tables[chance.choice(sorted(tables))] for _ in range(2))
    roll = chance.random()
    if roll < 0.45:
        return _insert(chance, one, two)
    if roll < 0.6:
        return _update(chance, one)
    if roll < 0.75:
        return _joined(chance, one, two)
    if roll < 0.9:
        return _copied(chance, one)
    return _delete(chance, one)


def _insert(chance: Random, table: RandomTable, other: RandomTable) -> str:
    columns = chance.sample(table.columns, chance.randint(max(1, len(table.columns) - 3), len(table.columns)))
    names = ", ".join(f"`{column.name}`" for column in columns)
    word = chance.choice(["INSERT", "INSERT IGNORE", "REPLACE", "INSERT"])
    if chance.random() < 0.2 and other is not table:
        sources = ", ".join(f"`{chance.choice(other.columns).name}`" for _ in columns)
        return f"{word} INTO `{table.name}` ({names}) SELECT {sources} FROM `{other.name}` LIMIT 5"
    if chance.random() < 0.1:
        values = ", ".join(f"`{column.name}` = {table.value(chance, column)}" for column in columns)
        return f"{word} INTO `{table.name}` SET {values}"
    rows = [f"({', '.join(table.value(chance, column) for column in columns)})" for _ in range(chance.randint(1, 4))]
    text = f"{word} INTO `{table.name}` ({names}) VALUES {', '.join(rows)}"
    if word != "REPLACE" and chance.random() < 0.4:
        changed = chance.choice(columns)
        value = chance.choice([f"VALUES(`{changed.name}`)", table.value(chance, changed), "DEFAULT"])
        text += f" ON DUPLICATE KEY UPDATE `{changed.name}` = {value}"
    return text


def _update(chance: Random, table: RandomTable) -> str:
    column = chance.choice(table.columns)
    word = chance.choice(["UPDATE", "UPDATE", "UPDATE IGNORE"])
    value = chance.choice([table.value(chance, column), table.value(chance, column), "DEFAULT"])
    return f"{word} `{table.name}` SET `{column.name}` = {value} LIMIT {chance.randint(1, 5)}"


def _copied(chance: Random, table: RandomTable) -> str:
    """A column takes another one's values, in the form of its own type."""
    one, two = (chance.choice(table.columns).name for _ in range(2))
    return f"UPDATE IGNORE `{table.name}` SET `{one}` = `{two}` WHERE RAND({chance.randrange(1000)}) < 0.3"


def _joined(chance: Random, table: RandomTable, other: RandomTable) -> str:
    few = f"WHERE RAND({chance.randrange(1000)}) < 0.05"
    if chance.random() < 0.4:
        return f"DELETE a, b FROM `{table.name}` a JOIN `{other.name}` b {few}"
    one, two = chance.choice(table.columns), chance.choice(other.columns)
    changes = f"a.`{one.name}` = {one.values(chance)}, b.`{two.name}` = {two.values(chance)}"
    return f"UPDATE {chance.choice(['', 'IGNORE '])}`{table.name}` a JOIN `{other.name}` b SET {changes} {few}"


def _delete(chance: Random, table: RandomTable) -> str:
    quick = chance.choice(["", "QUICK ", "IGNORE ", "LOW_PRIORITY "])
    return f"DELETE {quick}FROM `{table.name}` {chance.choice(['LIMIT 2', 'LIMIT 1', 'WHERE RAND(3) < 0.5', ''])}"
