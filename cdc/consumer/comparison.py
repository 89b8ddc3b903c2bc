"""Compares the definitions of the follower's tables with the leader's; both servers are queried."""

import re
from collections.abc import Iterator

from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.consumer.follower.table_definitions import Definitions, table_definitions
from cdc.consumer.literals.values import identifier
from cdc.errors import UserError
from cdc.model.names import folded
from cdc.sql.create_table import differences, with_folded_names

__all__ = ["Comparison"]

_OTHER_DATABASE = re.compile(r"(?<=REFERENCES )`((?:[^`]|``)+)`(?=\.)")
Table = tuple[str, str]


class Comparison:
    """Compares all tables that pass the filters of both profiles. ``profile`` is the consumer's, ``leader`` the
    producer's; ``folds`` is true if the follower stores all names in lower case.

    Raises UserError if the two profiles do not belong to one stream.
    """

    def __init__(self, profile: Profile, leader: Profile, renames: Renames, *, folds: bool) -> None:
        _require_one_stream(profile, leader)
        self._profile = profile
        self._leader = leader
        self._renames = renames
        self._folds = folds
        self._compared = 0
        self._ours = self._theirs = Definitions({}, is_mysql=True)

    def read(self) -> None:
        """Reads the definitions from both servers, the leader's first. A difference that arises between the two reads
        comes from a statement that the follower has applied already. The topic contains this statement, so the caller
        reports a lag instead of a problem. Raises UserError.
        """
        self._theirs = table_definitions(self._leader.database, wants=self._wanted)
        theirs = {self._name(*table) for table in self._theirs.tables}
        # The follower shows names in lower case, where it folds them; the leader's filters have them in any case.
        leader = self._leader.filters.folded() if self._folds else self._leader.filters
        own, ours = self._profile.consumer.schema, self._profile.filters

        def wanted(database: str, table: str) -> bool:
            former = self._renames.former(database), table
            is_replicated = database != own and leader.wants_table(*former) and ours.wants_table(*former)
            return is_replicated or (database, table) in theirs

        self._ours = table_definitions(self._profile.database, wants=wanted)

    def errors(self) -> Iterator[UserError]:
        """Yields an error for each table that only one server has, or that they define differently."""
        theirs = {self._name(*table): (table, self._text(text)) for table, text in self._theirs.tables.items()}
        for name in sorted(theirs.keys() | self._ours.tables.keys()):
            self._compared += 1
            if name not in theirs:
                yield _only_here(name, self._profile)
            elif name not in self._ours.tables:
                yield _only_there(name, theirs[name][0], self._profile)
            elif self._theirs.is_mysql and (error := self._different(name, theirs[name][1])):
                yield error

    def summary(self) -> str:
        """Returns a sentence that describes what was compared."""
        what = "the definitions" if self._theirs.is_mysql else "the names, not the definitions of a MariaDB leader,"
        return f"{what} of {self._compared} tables were compared with the leader {self._leader.database}"

    def _different(self, name: Table, there: str) -> UserError | None:
        here = self._ours.tables[name]
        here = with_folded_names(here) if self._folds else here
        found = differences(here, there, any_engine=self._profile.consumer.engine != "keep")
        if not found:
            return None
        table = ".".join(map(identifier, name))
        return UserError(
            f"{'.'.join(name)} is not defined as on the leader: {'; '.join(each.what for each in found)}",
            code="CDC-CHECK-DEFINITION",
            where=str(self._profile.database),
            hint=f"on the follower: ALTER TABLE {table} {', '.join(each.change for each in found if each.change)}",
        )

    def _wanted(self, database: str, table: str) -> bool:
        """Whether a table of the leader passes the producer's and the consumer's filters."""
        names = (folded(database), folded(table)) if self._folds else (database, table)
        return self._leader.filters.wants_table(database, table) and self._profile.filters.wants_table(*names)

    def _name(self, database: str, table: str) -> Table:
        """Returns the follower's name for a table of the leader."""
        names = (folded(database), folded(table)) if self._folds else (database, table)
        return self._renames.new(names[0]), names[1]

    def _text(self, definition: str) -> str:
        """Returns the leader's definition with the follower's names of databases and tables."""
        definition = with_folded_names(definition) if self._folds else definition
        return _OTHER_DATABASE.sub(lambda found: identifier(self._renames.new(found[1].replace("``", "`"))), definition)


def _require_one_stream(profile: Profile, leader: Profile) -> None:
    for key, ours, theirs in (
        ("mysql_resource_name", profile.mysql_resource_name, leader.mysql_resource_name),
        ("kafka.topic", profile.kafka.topic, leader.kafka.topic),
    ):
        if ours != theirs:
            raise UserError(
                f"the leader's profile is of another stream: {ours!r} here, {theirs!r} there",
                code="CDC-CHECK-OTHER-STREAM",
                where=f"option --leader, profile key {key}",
                hint="give the profile of the cdc-producer that writes this consumer's topic",
            )


def _only_here(name: Table, profile: Profile) -> UserError:
    return UserError(
        f"{'.'.join(name)} is not on the leader",
        code="CDC-CHECK-DEFINITION",
        where=str(profile.database),
        hint="drop it on the follower, or leave it out with the filters: a table that the leader creates under that "
        "name would stop the consumer",
    )


def _only_there(name: Table, table: Table, profile: Profile) -> UserError:
    return UserError(
        f"{'.'.join(name)} is missing on the follower",
        code="CDC-CHECK-DEFINITION",
        where=str(profile.database),
        hint="create it on the follower with the leader's SHOW CREATE TABLE, then have its rows copied: cdc-producer "
        f"PROFILE --copy '{'.'.join(table)}'",
    )
