"""Decides which of the leader's tables and statements are for this follower, by the consumer's filters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc.config.filters import CHECKPOINT_DATABASE, Filters, filtered_name
from cdc.model.uri import Uri
from cdc.spark.ddl.lineage import Act
from cdc.spark.input.renaming import name_on_leader
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.tokens import excerpt

__all__ = ["Scope"]

_LISTED = 10
_HINT = "name the profile of cdc-consumer with --consumer"


@dataclass(frozen=True, slots=True)
class Scope:
    """The consumer's ``filters`` over the leader's names; None if its profile was not given.

    ``schema`` is the consumer's own database on the follower.
    """

    filters: Filters | None = None
    schema: str = CHECKPOINT_DATABASE

    def wants_table(self, database: str, table: str) -> bool:
        """Whether the table's rows are for the follower."""
        if database == CHECKPOINT_DATABASE:
            return False
        return self.filters is None or self.filters.wants_table(name_on_leader(database), table)

    @property
    def lets_in_own(self) -> bool:
        """Whether a leader's database with the same name as the consumer's own would be for the follower."""
        return self.filters is None or self.filters.wants_database(self.schema)

    def wants(self, act: Act) -> bool:
        """Whether an effect of a statement is for the follower."""
        uri = Uri.parse(act.uri)
        if self.filters is None or uri.database == CHECKPOINT_DATABASE:
            return uri.database != CHECKPOINT_DATABASE
        return self.filters.wants(name_on_leader(uri.database), filtered_name(act.action, uri.table))

    def may_want(self, act: Act) -> bool:
        """Whether an effect of a skipped event may be for the follower; which objects it changed may be unknown."""
        return Uri.parse(act.uri).database == "*" or self.wants(act)

    def contradictions(self, leader: Sequence[Act], not_run: Mapping[int, str]) -> Iterator[str]:
        """Reasons why the statements that the consumer left out do not match these filters.

        ``not_run`` has the sequences of the leader's statements that the follower did not run, with their state in its
        ledger: ``not applied`` are those that the consumer left out by its filters.
        """
        left_out = [
            act
            for act in sorted(leader)
            if not_run.get(act.sequence) == "not applied" and not act.action.endswith(LEADER_ONLY)
        ]
        if self.filters is None and left_out:
            act = left_out[0]
            yield (
                f"the filters of cdc-consumer left out statements of the leader, sequence {act.sequence} among them "
                f"({excerpt(act.text)}); {_HINT}"
            )
        for act in [act for act in left_out if self.filters is not None and self.wants(act)][:1]:
            yield (
                f"the filters of cdc-consumer left out sequence {act.sequence} ({excerpt(act.text)}), but those in its "
                "profile let it in: they were changed, and a table that is let in later needs a fresh copy of its rows"
            )

    def silent(self, tables: Sequence[tuple[str, str]]) -> str | None:
        """The reason why ``tables``, which no statement and no row of the follower names, can't be judged.

        None if they are drift: if the consumer's filters are known, the follower should have them.
        """
        if self.filters is not None or not tables:
            return None
        names = ", ".join(f"{database}.{table}" for database, table in tables[:_LISTED])
        return f"the follower's topic has no records of {names}: if the filters of cdc-consumer leave them out, {_HINT}"
