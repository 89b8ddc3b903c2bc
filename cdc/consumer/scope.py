"""Decides, according to the filters in the profile, which of the leader's databases and tables are replicated."""

import json
from collections.abc import Callable

from cdc.config.filters import swap
from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.model.record import Record, Uri

__all__ = ["listed", "replicated", "require_no_masks", "require_no_row_filters", "way_across"]


def replicated(profile: Profile) -> Callable[[Uri], bool]:
    """Returns a function that decides whether a database or table, given as a URI with the leader's name, is
    replicated.

    That function raises UserError if a replicated database has the name of the consumer's own database on the follower.
    """
    filters, own = profile.filters, profile.consumer.schema

    def passes(uri: Uri) -> bool:
        wanted = filters.wants(uri.database, uri.table)
        if wanted and uri.database == own:
            raise UserError(
                f"the leader has a database {own}, which on the follower is the consumer's own",
                code="CDC-FOLLOWER-SCHEMA-TAKEN",
                where=str(uri),
                hint=f'if the leader is itself a follower, leave it out: filters.exclude_dbs = ["{own}"] in the '
                "consumer's profile; else set another name in consumer.schema, and begin with a fresh follower",
            )
        return wanted

    return passes


def require_no_masks(profile: Profile) -> None:
    """Raises UserError if the profile masks columns. Only the producer can mask columns; the follower would get the
    unmasked values that are in the topic.
    """
    if profile.filters.mask_columns:
        raise UserError(
            "a consumer masks no columns",
            code="CDC-CONSUMER-MASKS",
            where="profile key filters.mask_columns",
            hint="mask them in the producer's profile, so that no value reaches Kafka, and remove the key here",
        )


def require_no_row_filters(profile: Profile) -> None:
    """Raises UserError if the profile leaves rows out. Only the producer can leave rows out; the follower would get the
    rows that are in the topic.
    """
    if profile.filters.rows:
        raise UserError(
            "a consumer leaves no rows out",
            code="CDC-CONSUMER-ROWS",
            where="profile key filters.rows",
            hint="leave them out in the producer's profile, so that no row reaches Kafka, and remove the key here",
        )


def way_across(record: Record, passes: Callable[[Uri], bool]) -> str:
    """Returns the hint for a statement on several tables if only some of the tables pass the filters."""
    ends = [(Uri.parse(affect["uri"]), Uri.parse(affect["to"])) for affect in record.affects if "to" in affect]
    swapped = swap(((one.database, one.table or ""), (other.database, other.table or "")) for one, other in ends)
    if swapped is None:
        return "let all of its tables in, or none"
    there, new = (passes(Uri(record.uri.resource, *name)) for name in (swapped.table, swapped.new))
    place, setting = "if a tool put another version of the table in its place", f"set {swapped.setting}"
    if there and not new:
        return (
            f"{place}, do its ALTER on the follower by hand, continue with --skip {record.sequence}, and then "
            f"{setting} "
            "in the consumer's profile: docs/filters-and-renames.md (Filters of the consumer)"
        )
    return f"{place}, {setting} in the consumer's profile, and start again"


def listed(profile: Profile) -> str:
    """Returns the filters and renames as JSON. Profiles that replicate the same objects have the same JSON."""
    scope: dict[str, object] = {**profile.filters.listed()}
    if profile.renames:
        scope["renames"] = profile.renames
    return json.dumps(scope, sort_keys=True)
