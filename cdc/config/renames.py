"""Databases that the follower has under another name than the leader (the profile's ``[renames]``)."""

import re
from collections.abc import Mapping

from cdc.config.filters import CHECKPOINT_DATABASE, SYSTEM_DATABASES
from cdc.errors import UserError

__all__ = ["Renames", "require_own"]

_KEY = "profile key renames"
_OWN = re.compile(r"[0-9A-Za-z_$-]{1,64}", re.ASCII)
_LONGEST = 64  # characters of a name (manual, "Identifier Length Limits")


class Renames:
    """``databases`` maps the leader's names to the follower's; a database it does not name keeps its own.

    ``own`` is the consumer's own database on the follower, which is no name for another.
    ``taken`` are names that no database of the leader can keep, since another one gets them.
    Raises UserError for names that can't be, and for two databases that would become one.
    """

    def __init__(self, databases: Mapping[str, str], *, own: str = CHECKPOINT_DATABASE) -> None:
        self.databases = dict(databases)
        for old, new in self.databases.items():
            _check(old, new, own)
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


def require_own(schema: str) -> None:
    """Raise UserError for what can't be the consumer's own database."""
    if not _OWN.fullmatch(schema) or schema in SYSTEM_DATABASES:
        raise UserError(
            f"{schema!r} can't be the consumer's own database",
            where="profile key consumer.schema",
            hint="give it a name of its own, of letters, digits, _, - and $",
        )


def _check(old: str, new: object, own: str) -> None:
    if not isinstance(new, str) or not new or not old:
        raise UserError(f"{old!r} = {new!r} is no pair of names", where=_KEY, hint='write leaders_name = "followers"')
    if "." in old or len(new) > _LONGEST or not new.isascii():
        raise UserError(
            f"{old!r} cannot become {new!r}",
            where=_KEY,
            hint=f"databases can be renamed, tables can't; a new name is ASCII, of {_LONGEST} characters at most",
        )
    for name in (old, new):
        if name in SYSTEM_DATABASES or name == own:
            raise UserError(f"{name} is not replicated", where=_KEY, hint="name other databases")
