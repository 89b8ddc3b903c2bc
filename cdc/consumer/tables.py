"""What the follower's tables are like where the records do not say it: generated columns and unique keys."""

from dataclasses import dataclass

from cdc.consumer.literals import quoted, table_name
from cdc.consumer.session import Session
from cdc.errors import PromiseError
from cdc.record import Uri

__all__ = ["KeyPart", "Tables"]


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a unique key (None: an expression) and how many of its characters count (None: all)."""

    column: str | None
    length: int | None


class Tables:
    """Asked once a table, until ``forget``: a statement may have altered them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._generated: dict[Uri, frozenset[str]] = {}

    def forget(self) -> None:
        """Ask again next time."""
        self._generated.clear()

    def generated(self, table: Uri) -> frozenset[str]:
        """The columns that the follower computes itself.

        Raises PromiseError for a table that knows no transactions, Interrupted or Refused.
        """
        known = self._generated.get(table)
        if known is None:
            self._check_engine(table)
            rows = self._session.rows(
                f"SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE {_place(table)} "
                "AND GENERATION_EXPRESSION <> ''"
            )
            known = self._generated[table] = frozenset(str(name) for (name,) in rows)
        return known

    def _check_engine(self, table: Uri) -> None:
        """Rows that cannot be rolled back cannot commit together with the checkpoint."""
        for engine, transactions in self._session.rows(
            "SELECT ENGINE, TRANSACTIONS FROM information_schema.TABLES JOIN information_schema.ENGINES USING (ENGINE) "
            f"WHERE {_place(table)}"
        ):
            if transactions != "YES":
                raise PromiseError(
                    f"the follower's table is kept by {engine}, which has no transactions: rows could be applied twice",
                    where=str(table),
                    hint=f"on the follower: ALTER TABLE {table_name(table)} ENGINE = InnoDB",
                )

    def unique_keys(self, table: Uri) -> dict[str, list[KeyPart]]:
        """The primary and unique keys, by name. Raises Interrupted or Refused."""
        keys: dict[str, list[KeyPart]] = {}
        for name, column, length in self._session.rows(
            f"SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE {_place(table)} "
            "AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX"
        ):
            keys.setdefault(name, []).append(KeyPart(column, length))
        return keys


def _place(table: Uri) -> str:
    return f"TABLE_SCHEMA = {quoted(table.database)} AND TABLE_NAME = {quoted(table.table or '')}"
