"""The follower's records under the leader's names of databases, where the consumer renames them.

The consumer's own database is called ``CHECKPOINT_DATABASE`` in all that follows, whatever its name is. Where that is
another one, the leader may have a database of that name, which both sides then have as ``OF_LEADER``.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.model.record import Uri
from cdc.spark.input.records import FOLLOWER, LEADER

__all__ = ["OF_LEADER", "named", "naming", "own_schema", "renames", "under_leaders_names"]


OF_LEADER = f"{CHECKPOINT_DATABASE} of the leader"


def own_schema(profiles: Mapping[str, Profile], consumer: Profile | None) -> str:
    """The consumer's own database on the follower: as its profile says where that is given, else the follower's."""
    return (consumer or profiles[FOLLOWER]).consumer.schema


def named(database: str) -> str:
    """The leader's own name of a database that is shown under another."""
    return CHECKPOINT_DATABASE if database == OF_LEADER else database


def renames(profiles: Mapping[str, Profile], consumer: Profile | None) -> Renames:
    """The consumer's, where its profile is given, else those that the follower's profile repeats."""
    return Renames((consumer or profiles[FOLLOWER]).renames, own=own_schema(profiles, consumer))


def naming(profiles: Mapping[str, Profile], consumer: Profile | None) -> dict[str, str]:
    """What decides the names, for a state that must be of the same."""
    schema = own_schema(profiles, consumer)
    own = {} if schema == CHECKPOINT_DATABASE else {"the consumer's own": schema}
    return dict(renames(profiles, consumer).databases) | own


def under_leaders_names(records: DataFrame, renames: Renames, *, schema: str = CHECKPOINT_DATABASE) -> DataFrame:
    """``records`` as ``topics.parse`` gives them; ``schema`` is the consumer's own database."""
    names = {FOLLOWER: renames.leaders}
    if schema != CHECKPOINT_DATABASE:
        theirs = {there: OF_LEADER if here == CHECKPOINT_DATABASE else here for there, here in renames.leaders.items()}
        moved = {CHECKPOINT_DATABASE: OF_LEADER}
        names = {LEADER: moved, FOLLOWER: moved | theirs | {schema: CHECKPOINT_DATABASE}}
    for side, those in names.items():
        if those:
            records = _renamed(records, side, those)
    return records


def _renamed(records: DataFrame, side: str, names: Mapping[str, str]) -> DataFrame:
    """Those of one side with the databases' names that ``names`` gives them."""
    theirs = F.col("side") == side
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


def _mapped(name: Column, names: Mapping[str, str]) -> Column:
    pairs = [F.lit(each) for pair in names.items() for each in pair]
    return F.coalesce(F.try_element_at(F.create_map(*pairs), name), name)


def _path(database: str) -> str:
    """A database as it stands in a URI."""
    return str(Uri("", database)).rpartition("/")[2]
