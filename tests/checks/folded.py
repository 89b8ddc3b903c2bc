"""Tables as a server shows them and as records leave them, in one form, so that they can be compared."""

from collections import Counter
from typing import Any

from cdc.model.record import Record, Uri
from tests.checks.exact import Shown, cell, from_record, from_server

__all__ = ["Fold", "Rows", "shown"]

Rows = Counter[tuple[Shown, ...]]


def shown(cursor: Any, database: str) -> dict[str, Rows]:
    """All tables of a database, asked in a session whose time zone is UTC."""
    cursor.execute(
        "SELECT table_name, column_name, data_type, column_type, character_set_name FROM information_schema.columns "
        "JOIN information_schema.tables USING (table_schema, table_name) "
        "WHERE table_schema = %s AND table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position",
        (database,),
    )
    columns: dict[str, list[str]] = {}
    for table, *column in cursor.fetchall():
        columns.setdefault(table, []).append(cell(*column))
    found = {}
    for table, cells in columns.items():
        quoted = table.replace("`", "``")
        cursor.execute(f"SELECT {', '.join(cells)} FROM `{database}`.`{quoted}`")
        found[table] = Counter(tuple(map(from_server, row)) for row in cursor.fetchall())
    return found


class Fold:
    """What the records of one database leave in its tables, by their rows and by what ``affects`` says, not by SQL.

    ALTER TABLE can change rows that nothing is logged of: the tables that one touched are in ``altered``.
    """

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {}
        self.altered: set[str] = set()

    def take(self, record: Record) -> None:
        """An image that the record takes away must be there."""
        for affect in record.affects:
            self._affect(affect)
        rows = self.tables.setdefault(record.uri.table, Counter()) if record.uri.table is not None else Counter()
        for row in record.rows:
            if row.before is not None:
                image = tuple(map(from_record, row.before))
                assert rows[image] > 0 or record.uri.table in self.altered, (record, image)
                rows[image] -= 1
            if row.after is not None:
                rows[tuple(map(from_record, row.after))] += 1

    def _affect(self, affect: dict[str, Any]) -> None:
        name = Uri.parse(affect["uri"]).table
        if name is None:
            return
        if affect["action"] == "CreateTable":
            self.tables.setdefault(name, Counter())  # IF NOT EXISTS: it may be there
        elif affect["action"] == "DropTable":
            self.tables.pop(name, None)
            self.altered.discard(name)
        elif affect["action"] == "TruncateTable":
            self.tables[name] = Counter()
        elif affect["action"] == "AlterTable":
            self.altered.add(name)
        elif affect["action"] == "RenameTable":
            self._rename(name, str(Uri.parse(affect["to"]).table))

    def _rename(self, name: str, to: str) -> None:
        self.tables[to] = self.tables.pop(name)
        if name in self.altered:
            self.altered.remove(name)
            self.altered.add(to)
