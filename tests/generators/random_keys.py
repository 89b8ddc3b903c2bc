"""Random tables with any keys, and histories whose rows collide with one another, as SQL. Pure."""

from dataclasses import dataclass
from random import Random

__all__ = ["RandomHistory", "random_history"]

_NUMBERS = ["INT NULL", "DOUBLE NULL", "DECIMAL(6,2) NULL", "DATETIME(3) NULL", "TIME NULL", "BIT(3) NULL"]
_DOCUMENTS = ["JSON NULL", "TEXT NULL", "VARBINARY(8) NULL", "TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP"]
_COLLATIONS = ["utf8mb4_0900_ai_ci", "utf8mb4_bin", "utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_0900_as_cs"]
# Texts that are equal without case, accents or trailing spaces, in some of the collations.
_WORDS = ["a", "A", "á", "b", "B", "b ", "abcd", "ABCE", "", "zz"]


@dataclass(frozen=True)
class RandomHistory:
    """Statements that create the tables, and transactions of statements; the server may refuse any of these."""

    tables: tuple[str, ...]
    definitions: tuple[str, ...]
    transactions: tuple[tuple[str, ...], ...]


def random_history(chance: Random, name: str, *, transactions: int) -> RandomHistory:
    """A table with any keys or, now and then, a parent and its child."""
    if chance.random() < 0.15:
        return _family(chance, name, transactions)
    columns = ["i", "j", "s", "n", "d"]
    kinds = {
        "i": "INT NOT NULL",
        "j": "INT NULL",
        "s": _text(chance, null=chance.random() < 0.4),
        "n": chance.choice(_NUMBERS),
        "d": chance.choice(_DOCUMENTS),
    }
    parts = [f"{column} {kinds[column]}" for column in columns]
    if chance.random() < 0.3:
        parts.append(f"g INT AS (j {chance.choice(['+ 1', 'DIV 2'])}) {chance.choice(['STORED', 'VIRTUAL'])}")
        columns.append("g")
    parts += _keys(chance, kinds, generated="g" in columns)
    partitions = " PARTITION BY HASH (i) PARTITIONS 3" if parts[-1] == "PRIMARY KEY (i)" and len(parts) == 6 else ""
    written = columns[:5]
    return RandomHistory(
        (name,),
        (f"CREATE TABLE {name} ({', '.join(parts)}){partitions}",),
        tuple(
            tuple(_statement(chance, name, written, kinds) for _ in range(chance.randint(1, 4)))
            for _ in range(transactions)
        ),
    )


def _text(chance: Random, *, null: bool) -> str:
    collation = chance.choice(_COLLATIONS)
    kind = chance.choice(["VARCHAR(10)", "CHAR(6)"])
    charset = collation.partition("_")[0]
    return f"{kind} CHARACTER SET {charset} COLLATE {collation} {'NULL' if null else 'NOT NULL'}"


def _keys(chance: Random, kinds: dict[str, str], *, generated: bool) -> list[str]:
    primary = chance.choice(["i", "i", "i, j", "s", "s, i", "unique i", "unique i, s", "none"])
    solid = [column for column in primary.removeprefix("unique ").split(", ") if "NOT NULL" in kinds.get(column, "")]
    secondary = ["j", "n", "s", "j, s", "s(2)", "(j + n)", "(UPPER(s))", *(["g"] if generated else [])]
    keys = [f"UNIQUE KEY u{place} ({chance.choice(secondary)})" for place in range(chance.choice([0, 0, 1, 1, 2]))]
    if solid:
        keys.append(f"{'UNIQUE KEY p' if primary.startswith('unique') else 'PRIMARY KEY'} ({', '.join(solid)})")
    return keys


def _value(chance: Random, column: str, kind: str) -> str:
    if "NOT NULL" not in kind and chance.random() < 0.2:
        return "NULL"
    if column in ("i", "j"):
        return str(chance.randint(0, 6))
    if column == "s":
        return f"'{chance.choice(_WORDS)}'"
    number = chance.randint(0, 4)
    by_kind = {
        "DOUBLE": chance.choice(["0e0", "-0e0", "0.1e0", f"{number}.5e0"]),
        "DATETIME": f"'2024-01-0{number + 1} 00:00:00.5'",
        "TIMESTAMP": f"'2024-01-0{number + 1} 00:00:00'",
        "TIME": f"'{chance.choice(['', '-'])}0{number}:00:00'",
        "JSON": chance.choice(["'{\"a\": 1}'", "'{\"a\": 1.0}'", "'[]'", "'1'", "'\"x\"'"]),
        "TEXT": f"'{chance.choice(_WORDS)}'",
        "VARBINARY": chance.choice(["x''", "x'00'", "x'ff'", "x'0000'"]),
    }
    return by_kind.get(kind.partition(" ")[0].partition("(")[0], str(number))


def _statement(chance: Random, table: str, columns: list[str], kinds: dict[str, str]) -> str:
    where = chance.choice([f"WHERE i = {chance.randint(0, 6)}", f"WHERE j = {chance.randint(0, 6)}", "", "WHERE i > 3"])
    some = f"{where} ORDER BY i {chance.choice(['', 'DESC'])} LIMIT {chance.randint(1, 3)}"
    kind = chance.random()
    rows = ",".join(_row(chance, columns, kinds) for _ in range(chance.choice([1, 1, 3])))
    if kind < 0.35:
        ignore = chance.choice(["", "IGNORE"])
        return f"INSERT {ignore} INTO {table} ({','.join(columns)}) VALUES {rows}"
    if kind < 0.45:
        return f"REPLACE INTO {table} ({','.join(columns)}) VALUES {rows}"
    if kind < 0.5:
        taken = f"j = {chance.randint(0, 6)}"
        return f"INSERT INTO {table} ({','.join(columns)}) VALUES {rows} ON DUPLICATE KEY UPDATE {taken}"
    if kind < 0.7:
        return f"DELETE FROM {table} {some}"
    if kind < 0.8:
        step = chance.choice(["i = i + 10", "i = i - 10", "j = j + 1", "j = j - 1", "i = 6 - i"])
        return f"UPDATE IGNORE {table} SET {step} {where}"
    column = chance.choice(columns)
    return f"UPDATE {table} SET {column} = {_value(chance, column, kinds[column])} {some}"


def _row(chance: Random, columns: list[str], kinds: dict[str, str]) -> str:
    return f"({','.join(_value(chance, column, kinds[column]) for column in columns)})"


def _family(chance: Random, name: str, transactions: int) -> RandomHistory:
    action = chance.choice(["CASCADE", "SET NULL", "RESTRICT", "NO ACTION"])
    changed = chance.choice(["CASCADE", "SET NULL", "RESTRICT"])
    child = f"{name}_child"
    foreign = f"FOREIGN KEY (parent) REFERENCES {name} (id) ON DELETE {action} ON UPDATE {changed}"
    statements = [
        lambda: f"INSERT INTO {name} VALUES ({chance.randint(0, 6)}, {chance.randint(0, 6)})",
        lambda: f"INSERT INTO {child} VALUES ({chance.randint(0, 20)}, {chance.randint(0, 6)}, {chance.randint(0, 6)})",
        lambda: f"UPDATE {name} SET id = {chance.randint(0, 6)} WHERE id = {chance.randint(0, 6)}",
        lambda: f"UPDATE {name} SET v = v + 1 WHERE id = {chance.randint(0, 6)}",
        lambda: f"UPDATE {child} SET parent = {chance.randint(0, 6)} WHERE id = {chance.randint(0, 20)}",
        lambda: f"DELETE FROM {name} WHERE id = {chance.randint(0, 6)}",
        lambda: f"DELETE FROM {child} WHERE parent = {chance.randint(0, 6)}",
        lambda: f"SET SESSION foreign_key_checks = {chance.choice([0, 1, 1])}",
    ]
    return RandomHistory(
        (name, child),
        (
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT UNIQUE)",
            f"CREATE TABLE {child} (id INT PRIMARY KEY, parent INT NULL, w INT, {foreign})",
        ),
        tuple(tuple(chance.choice(statements)() for _ in range(chance.randint(1, 4))) for _ in range(transactions)),
    )
