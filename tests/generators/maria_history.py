"""Random statements in a dialect that MariaDB and MySQL share: rows in transactions, and tables that change between."""

import random
from collections.abc import Iterator

__all__ = ["maria_history"]

_TYPES = (
    "INT", "BIGINT UNSIGNED", "DECIMAL(10,3)", "DOUBLE", "VARCHAR(20)", "CHAR(5) CHARACTER SET latin1", "TEXT", "BLOB",
    "DATETIME(6)", "DATE", "TIME(3)", "ENUM('a','b','c')", "BIT(5)", "YEAR", "TIMESTAMP(2) NULL", "VARBINARY(9)",
)  # fmt: skip
_TABLES = ("t0", "t1", "keyless", "`a b`")


class _Table:
    def __init__(self, name: str, keyed: bool) -> None:
        self.name, self.keyed = name, keyed
        self.columns: dict[str, str] = {}
        self.added = 0


def maria_history(seed: int, deeds: int) -> Iterator[str]:
    """Yields statements of one session; some of them are refused by the server."""
    choose = random.Random(seed)
    tables = [_Table(name, name != "keyless") for name in _TABLES]
    for table in tables:
        key = "id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE" if table.keyed else "id INT, u INT"
        yield f"CREATE TABLE {table.name} ({key})"
        yield from (_added(table, choose) for _ in range(4))
    for number in range(deeds):
        table = choose.choice(tables)
        if choose.random() < 0.15:
            yield _alteration(table, choose, number)
        elif choose.random() < 0.5:
            yield _change(table, choose)
        else:
            yield "BEGIN"
            for _ in range(choose.randint(1, 5)):
                yield choose.choice(("SAVEPOINT s", "ROLLBACK TO s", *(_change(table, choose),) * 4))
                table = choose.choice(tables)
            yield choose.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))


def _added(table: _Table, choose: random.Random) -> str:
    name, kind = f"c{table.added}", choose.choice(_TYPES)
    table.added += 1
    table.columns[name] = kind
    default = "" if kind in ("TEXT", "BLOB") else f" DEFAULT {_value(kind, choose)}"
    return f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}{default}"


def _alteration(table: _Table, choose: random.Random, number: int) -> str:
    if table.columns and choose.random() < 0.3:
        name = choose.choice([*table.columns])
        del table.columns[name]
        return f"ALTER TABLE {table.name} DROP COLUMN {name}"
    return choose.choice((
        _added(table, choose),
        f"ALTER TABLE {table.name} ADD INDEX i{number} (u)",
        f"TRUNCATE TABLE {table.name}",
        f"CREATE TABLE made{number} AS SELECT * FROM {table.name}",
        f"CREATE TABLE like{number} LIKE {table.name}",
        f"RENAME TABLE {table.name} TO away, away TO {table.name}",
        f"CREATE OR REPLACE VIEW seen AS SELECT id, u FROM {table.name}",
        f"ALTER TABLE {table.name} ENGINE = InnoDB",
    ))  # fmt: skip


def _change(table: _Table, choose: random.Random) -> str:
    names = choose.sample([*table.columns], min(len(table.columns), 3))
    values = ", ".join(f"{name} = {_value(table.columns[name], choose)}" for name in names) or "u = u + 1"
    some = f"MOD(id, {choose.randint(2, 5)}) = {choose.randint(0, 1)}"
    columns = ", ".join(("id", "u", *names))
    rows = ", ".join(_row([table.columns[name] for name in names], choose) for _ in range(choose.randint(1, 6)))
    return choose.choice((
        f"INSERT IGNORE INTO {table.name} ({columns}) VALUES {rows}",
        f"INSERT INTO {table.name} ({columns}) VALUES {rows}",
        f"REPLACE INTO {table.name} ({columns}) VALUES {rows}",
        f"INSERT INTO {table.name} ({columns}) VALUES {rows} ON DUPLICATE KEY UPDATE {values}",
        f"UPDATE {table.name} SET {values} WHERE {some}",
        f"UPDATE IGNORE {table.name} SET u = u + 1 WHERE {some}",
        f"DELETE FROM {table.name} WHERE {some} LIMIT {choose.randint(1, 9)}",
    ))  # fmt: skip


def _row(kinds: list[str], choose: random.Random) -> str:
    cells = [str(choose.randint(1, 400)), str(choose.randint(1, 900)), *(_value(kind, choose) for kind in kinds)]
    return f"({', '.join(cells)})"


def _value(kind: str, choose: random.Random) -> str:
    if choose.random() < 0.1:
        return "NULL"
    number = choose.randint(0, 99_999)
    text = (
        "".join(choose.choice("aäß 'ñ\\") for _ in range(choose.randint(0, 5))).replace("\\", "\\\\").replace("'", "''")
    )
    return {
        "INT": str(number - 50_000), "BIGINT UNSIGNED": str(number << 40), "DECIMAL(10,3)": f"{number / 1000}",
        "DOUBLE": repr(number / 7), "DATETIME(6)": f"'2020-01-01 10:00:00.{number:06}'",
        "DATE": f"'20{number % 90 + 10}-02-03'",
        "TIME(3)": f"'-{number % 800}:01:02.{number % 1000:03}'", "ENUM('a','b','c')": f"'{'abc'[number % 3]}'",
        "BIT(5)": f"b'{number % 32:b}'", "YEAR": str(1901 + number % 200),
        "TIMESTAMP(2) NULL": f"'2021-06-01 10:{number % 60:02}:00.{number % 100:02}'", "BLOB": f"x'{number:06x}'",
        "VARBINARY(9)": f"x'{number:06x}'",
    }.get(kind, f"'{text}'")  # fmt: skip
