"""The follower's records under the leader's names of databases, where the consumer renames them."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc.profile import Profile
from cdc.record import Uri
from cdc.renames import Renames
from cdc.spark.topics import FOLLOWER

__all__ = ["renames", "under_leaders_names"]


def renames(profiles: Mapping[str, Profile], consumer: Profile | None) -> Renames:
    """The consumer's, where its profile is given, else those that the follower's profile repeats."""
    return Renames((consumer or profiles[FOLLOWER]).renames)


def under_leaders_names(records: DataFrame, renames: Renames) -> DataFrame:
    """``records`` as ``topics.parse`` gives them; those of the leader are as they were."""
    if not renames:
        return records
    names = renames.leaders
    theirs = F.col("side") == FOLLOWER
    paths = {_path(there): _path(here) for there, here in names.items()}

    def uri(field: Column) -> Column:
        parts = F.split(field, "/")
        path = F.element_at(parts, 4)
        moved = F.concat_ws("/", F.slice(parts, 1, 3), _mapped(path, paths), F.slice(parts, 5, 1))
        return F.when(field.isNotNull(), moved)

    affects = F.transform(
        "affects",
        lambda each: F.struct(
            each["action"].alias("action"), *(uri(each[name]).alias(name) for name in ("uri", "to", "like"))
        ),
    )
    return records.withColumns({
        "database": F.when(theirs, _mapped(F.col("database"), names)).otherwise(F.col("database")),
        "affects": F.when(theirs, affects).otherwise(F.col("affects")),
    })  # fmt: skip


def _mapped(name: Column, names: dict[str, str]) -> Column:
    pairs = [F.lit(each) for pair in names.items() for each in pair]
    return F.coalesce(F.try_element_at(F.create_map(*pairs), name), name)


def _path(database: str) -> str:
    """A database as it stands in a URI."""
    return str(Uri("", database)).rpartition("/")[2]
