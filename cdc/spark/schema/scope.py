"""What of the leader's topic is for this follower: what the consumer's own filters let in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc.config.filters import CHECKPOINT_DATABASE, Filters, filtered_name
from cdc.model.uri import Uri
from cdc.spark.input.renaming import named
from cdc.spark.schema.lineage import Act
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.redaction import excerpt

__all__ = ["Scope"]

_LISTED = 10
_HINT = "name the profile of cdc-consumer with --consumer"


@dataclass(frozen=True, slots=True)
class Scope:
    """``filters`` are the consumer's, None where its profile was not given; names are the leader's.

    ``schema`` is the consumer's own database on the follower.
    """

    filters: Filters | None = None
    schema: str = CHECKPOINT_DATABASE

    def wants_table(self, database: str, table: str) -> bool:
        """Whether the table's rows are for the follower."""
        if database == CHECKPOINT_DATABASE:
            return False
        return self.filters is None or self.filters.wants_table(named(database), table)

    @property
    def lets_in_own(self) -> bool:
        """Whether a database of the leader that is called as the consumer's own would be for the follower."""
        return self.filters is None or self.filters.wants_database(self.schema)

    def wants(self, act: Act) -> bool:
        """Whether what a statement does is for the follower."""
        uri = Uri.parse(act.uri)
        if self.filters is None or uri.database == CHECKPOINT_DATABASE:
            return uri.database != CHECKPOINT_DATABASE
        return self.filters.wants(named(uri.database), filtered_name(act.action, uri.table))

    def may_want(self, act: Act) -> bool:
        """The same of a skipped event, of which it may not be known what it changed."""
        return Uri.parse(act.uri).database == "*" or self.wants(act)

    def contradictions(self, leader: Sequence[Act], settled: Mapping[int, str]) -> Iterator[str]:
        """Why the statements that the ledger calls ``not applied`` can't be told to be none of this follower's."""
        left_out = [
            act
            for act in sorted(leader)
            if settled.get(act.sequence) == "not applied" and not act.action.endswith(LEADER_ONLY)
        ]
        if self.filters is None and left_out:
            act = left_out[0]
            yield (
                f"the filters of cdc-consumer left out statements of the leader, sequence {act.sequence} among them "
                f"({excerpt(act.text)}); {_HINT}"
            )
        for act in [act for act in left_out if self.filters is not None and self.wants(act)][:1]:
            yield (
                f"the filters of cdc-consumer left out sequence {act.sequence} ({excerpt(act.text)}), those of its "
                "profile let it in: they were changed, and a table that is let in later needs a fresh copy"
            )

    def silent(self, tables: Sequence[tuple[str, str]]) -> str | None:
        """What to say of ``tables`` that no statement and no row of the follower's names; None where they are drift."""
        if self.filters is not None or not tables:
            return None
        names = ", ".join(f"{database}.{table}" for database, table in tables[:_LISTED])
        return f"the follower's topic does not know {names}: if the filters of cdc-consumer leave that out, {_HINT}"
