"""Decides which of the leader's databases and tables are replicated: those that the profile's filters let pass."""

from collections.abc import Callable

from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.model.record import Uri

__all__ = ["replicated"]


def replicated(profile: Profile) -> Callable[[Uri], bool]:
    """A function that says whether a database or table is replicated, by the leader's name.

    It raises UserError where a replicated database has the name of the consumer's own database on the follower.
    """
    filters, own = profile.filters, profile.consumer.schema

    def passes(uri: Uri) -> bool:
        wanted = filters.wants(uri.database, uri.table)
        if wanted and uri.database == own:
            raise UserError(
                f"the leader has a database {own}, and on the follower that is the consumer's own",
                where=str(uri),
                hint=f'where the leader is itself a follower, leave it out: filters.exclude_dbs = ["{own}"] in the '
                "consumer's profile; else give the consumer's own another name with consumer.schema, for a follower "
                "from its beginning",
            )
        return wanted

    return passes
