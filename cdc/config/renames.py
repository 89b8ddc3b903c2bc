"""Maps the leader's database names to the follower's names and back, according to the profile's ``[renames]``."""

import re
from collections.abc import Mapping

from cdc.config.filters import CHECKPOINT_DATABASE, SYSTEM_DATABASES
from cdc.errors import UserError
from cdc.model.names import folded

__all__ = ["Renames", "folded_renames", "require_own"]

_KEY = "profile key renames"
_OWN = re.compile(r"[0-9A-Za-z_$-]{1,64}", re.ASCII)
_LONGEST = 64  # characters; the maximum length of a name in MySQL (manual, "Identifier Length Limits")


class Renames:
    """Maps the leader's names to the follower's names according to ``databases``; other databases keep their names.

    ``own`` is the consumer's own database on the follower; no other database can have this name. ``taken`` are the
    names that a database of the leader cannot keep, because another database is renamed to them. ``folds`` is true if
    all stored names are in lower case, although statements may contain them in any case. Raises UserError for invalid
    names, and if two databases would have the same name.
    """

    def __init__(self, databases: Mapping[str, str], *, own: str = CHECKPOINT_DATABASE, folds: bool = False) -> None:
        self.databases = dict(databases)
        self._folds = folds
        for old, new in self.databases.items():
            _check(old, new, own)
        self._former = {new: old for old, new in self.databases.items()}
        if len(self._former) < len(self.databases):
            raise UserError(
                "two databases would get the same name",
                code="CDC-PROFILE-RENAMES",
                where=_KEY,
                hint="give each a name of its own on the follower",
            )
        self.taken = self._former.keys() - self.databases.keys()

    @property
    def leaders(self) -> dict[str, str]:
        """Maps the follower's database names to the leader's names. A database that exists only on the follower is
        mapped to a text (``… of the follower``) that no database of the leader has as its name.
        """
        return {old: f"{old} of the follower" for old in self.databases} | self._former

    def __bool__(self) -> bool:
        return bool(self.databases)

    def stored(self, database: str) -> str:
        """Returns the name under which the server stores a database; ``database`` is its name in a statement."""
        return folded(database) if self._folds else database

    def new(self, database: str) -> str:
        """Returns the follower's name for a database of the leader."""
        return self.databases.get(database, database)

    def former(self, database: str) -> str:
        """Returns the leader's name for a database on the follower."""
        return self._former.get(database, database)


def folded_renames(databases: Mapping[str, str]) -> dict[str, str]:
    """Returns the renames with all names in lower case. Raises UserError if one database would have two new names,
    because its old names differ only in case.
    """
    pairs = {(folded(old), folded(new)) for old, new in databases.items()}
    if len(dict(pairs)) < len(pairs):
        raise UserError(
            "to a server with lower_case_table_names = 1, names that differ only in case are the same name, which "
            "would get two new names",
            code="CDC-PROFILE-RENAMES",
            where=_KEY,
            hint="keep one of the two",
        )
    return dict(sorted(pairs))


def require_own(schema: str) -> None:
    """Raises UserError if ``schema`` cannot be the name of the consumer's own database."""
    if not _OWN.fullmatch(schema) or schema in SYSTEM_DATABASES:
        raise UserError(
            f"{schema!r} can't be the consumer's own database",
            code="CDC-PROFILE-SCHEMA",
            where="profile key consumer.schema",
            hint="give it a name of its own, of letters, digits, _, - and $",
        )


def _check(old: str, new: object, own: str) -> None:
    if not isinstance(new, str) or not new or not old:
        raise UserError(
            f"{old!r} = {new!r} is not a pair of names",
            code="CDC-PROFILE-RENAMES",
            where=_KEY,
            hint='write leaders_name = "followers"',
        )
    if "." in old or len(new) > _LONGEST or not new.isascii():
        raise UserError(
            f"{old!r} cannot become {new!r}",
            code="CDC-PROFILE-RENAMES",
            where=_KEY,
            hint=f"databases can be renamed, tables can't; a new name is ASCII, of {_LONGEST} characters at most",
        )
    for name in (old, new):
        if name in SYSTEM_DATABASES or name == own:
            raise UserError(
                f"{name} is not replicated", code="CDC-PROFILE-RENAMES", where=_KEY, hint="name other databases"
            )
