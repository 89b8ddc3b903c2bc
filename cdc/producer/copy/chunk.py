"""Keys whose rows a copy reads, and the state of a copy as its records have it."""

import json
from typing import NamedTuple, Self

from cdc.producer.copy.pending import Pending, Table

__all__ = ["Keys", "State"]


class Keys(NamedTuple):
    """Keys of rows of ``table``: of each the JSON texts of its values in the order of the key's ``columns``."""

    table: Table
    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


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
