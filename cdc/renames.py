"""Databases that the follower has under another name than the leader (the profile's ``[renames]``)."""

from collections.abc import Mapping

from cdc.errors import UserError
from cdc.filters import CHECKPOINT_DATABASE, SYSTEM_DATABASES

__all__ = ["Renames"]

_KEY = "profile key renames"
_LONGEST = 64  # characters of a name (manual, "Identifier Length Limits")


class Renames:
    """``databases`` maps the leader's names to the follower's; a database it does not name keeps its own.

    ``taken`` are names that no database of the leader can keep, since another one gets them.
    Raises UserError for names that can't be, and for two databases that would become one.
    """

    def __init__(self, databases: Mapping[str, str]) -> None:
        self.databases = dict(databases)
        for old, new in self.databases.items():
            _check(old, new)
        self._former = {new: old for old, new in self.databases.items()}
        if len(self._former) < len(self.databases):
            raise UserError(
                "two databases would get one name", where=_KEY, hint="give each a name of its own on the follower"
            )
        self.taken = self._former.keys() - self.databases.keys()

    @property
    def leaders(self) -> dict[str, str]:
        """The leader's names of the follower's databases; one whose name was renamed away is none of the leader's."""
        return {old: f"{old} of the follower" for old in self.databases} | self._former

    def __bool__(self) -> bool:
        return bool(self.databases)

    def new(self, database: str) -> str:
        """The follower's name of a leader's database."""
        return self.databases.get(database, database)

    def former(self, database: str) -> str:
        """The leader's name of a follower's database."""
        return self._former.get(database, database)


def _check(old: str, new: object) -> None:
    if not isinstance(new, str) or not new or not old:
        raise UserError(f"{old!r} = {new!r} is no pair of names", where=_KEY, hint='write leaders_name = "followers"')
    if "." in old or len(new) > _LONGEST or not new.isascii():
        raise UserError(
            f"{old!r} cannot become {new!r}",
            where=_KEY,
            hint=f"databases can be renamed, tables can't; a new name is ASCII, of {_LONGEST} characters at most",
        )
    for name in (old, new):
        if name in SYSTEM_DATABASES or name == CHECKPOINT_DATABASE:
            raise UserError(f"{name} is not replicated", where=_KEY, hint="name other databases")
