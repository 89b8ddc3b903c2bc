"""What a version of a lake's table has in its metadata: as of which sequence it is, and of which definition. Pure."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Self

from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import Plan

__all__ = ["Note", "Written", "definition"]

_KEY = "cdc_lake"
_FORMAT = 1  # of what rows become; another one has all tables written again


@dataclass(frozen=True, slots=True)
class Note:
    """The table ``database``.``table`` with all that the leader did up to ``sequence``, which ended ``transaction``.

    ``definition`` tells whether the columns, the key and the choices are those of another version.
    """

    database: str
    table: str
    sequence: int
    transaction: str
    definition: str

    def text(self) -> str:
        """As JSON, for a version's metadata."""
        return json.dumps({_KEY: asdict(self)}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """The note in a version's metadata; None where it has none."""
        try:
            return cls(**json.loads(text or "{}")[_KEY])
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class Written:
    """The newest version that cdc-lake wrote of a table, or None in ``note`` where something else wrote rows since."""

    version: int
    note: Note | None


def definition(plan: Plan, options: Options) -> str:
    """A digest of all that rows of the plan's table depend on beside the stream."""
    key = plan.stretches[-1].key if plan.stretches else ()
    known = (_FORMAT, plan.columns, key, options.zero_dates, options.on_alter, options.typed_json)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]
