"""What a copy writes between two transactions: chunks of tables, after what creates these at a stream's beginning."""

import json
from typing import Any, NamedTuple, Self

from cdc.config.filters import Filters
from cdc.producer.copy.pending import Pending, Table
from cdc.sql.effects import Effect

__all__ = ["Beginning", "Chunk", "Creation", "Keys", "State", "Structure"]


class Keys(NamedTuple):
    """Keys of rows of ``table``: of each the JSON texts of its values in the order of the key's ``columns``."""

    table: Table
    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


class Chunk(NamedTuple):
    """The rows of ``table``, JSON texts, with keys in (``after``, ``upto``], texts of the key's values.

    Without such a bound it begins, or ends, with the table. ``columns_json`` is that of the table's records,
    ``collations`` are those of the key's columns, None for one without. ``ts_us`` is when it was read.
    With a ``piece``, a number from 0, the table is copied as a whole: it has the rows of all pieces. A bound is then of
    no columns. With ``keys`` it has the rows with these keys, and no bounds.
    """

    table: Table
    columns_json: str
    collations: tuple[str | None, ...]
    after: tuple[str, ...] | None
    upto: tuple[str, ...] | None
    rows: list[str]
    ts_us: int
    piece: int | None = None
    keys: tuple[tuple[str, ...], ...] | None = None


class Creation(NamedTuple):
    """A statement with what it does and the session that it needs, as in ``Statement``."""

    text: str
    effects: tuple[Effect, ...]
    context: dict[str, Any]
    exact: bytes | None = None


class Structure(NamedTuple):
    """The base tables of a leader, those that foreign keys refer to first, and the statements that create all there is.

    ``invalid`` are views that can't be created, since what they select from is gone.
    """

    tables: list[Table]
    creations: list[Creation]
    invalid: list[Table]


class Beginning(NamedTuple):
    """The statements that create the leader's objects, as of ``ts_us``; the ``filters`` that hold from there on, None
    where they are the same as before."""

    structure: Structure
    ts_us: int
    filters: Filters | None = None


class State(NamedTuple):
    """What a run that goes on after a crash must know of a record that readers see: what is ``pending`` after it, and,
    where other ``filters`` (listed) hold from there on, which transactions the stream had ``executed`` by then."""

    pending: Pending
    filters: dict[str, list[str]] | None = None
    executed: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The state that ``text`` was made of. Raises TypeError, ValueError or KeyError for anything else."""
        body = json.loads(text)
        filters, executed = (body.pop(_FILTERS, None), body.pop(_EXECUTED, "")) if body else (None, "")
        return cls(Pending.from_json(body or None), filters, executed)

    def text(self) -> str:
        """The state as JSON."""
        if self.filters is None:
            return json.dumps(self.pending.to_json())
        return json.dumps((self.pending.to_json() or {}) | {_FILTERS: self.filters, _EXECUTED: self.executed})


_FILTERS, _EXECUTED = "filters", "executed"
