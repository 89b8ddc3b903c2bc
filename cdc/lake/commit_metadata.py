"""Reads and writes the commit metadata of lake tables: the sequence and the definition of each version. Pure."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Self

from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import Plan

__all__ = ["Note", "Written", "definition"]

_KEY = "cdc_lake"
_FORMAT = 1  # the format of values in tables; if it changes, all tables are written again


@dataclass(frozen=True, slots=True)
class Note:
    """The metadata of a version: the version is table ``database``.``table`` as of ``sequence``, the last sequence of
    ``transaction``.

    ``definition`` is equal for versions with the same columns, key and options.
    """

    database: str
    table: str
    sequence: int
    transaction: str
    definition: str

    def text(self) -> str:
        """The note as JSON, for a version's metadata."""
        return json.dumps({_KEY: asdict(self)}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """The note in the metadata of a version; None if there is none."""
        try:
            return cls(**json.loads(text or "{}")[_KEY])
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class Written:
    """The newest version of a table, with the note of cdc-lake; ``note`` is None if another writer has changed the
    table since."""

    version: int
    note: Note | None


def definition(plan: Plan, options: Options) -> str:
    """A digest of everything besides the stream that determines the rows of the plan's table."""
    key = plan.stretches[-1].key if plan.stretches else ()
    known = (_FORMAT, plan.columns, key, options.zero_dates, options.on_alter, options.typed_json)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]
