"""Renames the databases in both sides' records to the leader's names, so that the audit can compare the records.

The consumer may apply a leader's database under another name; the follower's records get the leader's name again. The
consumer's own database, whatever its name is, is called ``CHECKPOINT_DATABASE`` from here on. If its real name differs,
the leader may have a database called ``CHECKPOINT_DATABASE``; this database is called ``OF_LEADER`` on both sides.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.model.names import FOLDED
from cdc.model.record import Uri
from cdc.spark.input.records import FOLLOWER, LEADER

__all__ = [
    "OF_LEADER",
    "name_on_leader",
    "names_in_use",
    "own_schema",
    "renames",
    "with_leaders_names",
    "with_lower_case_names",
]


OF_LEADER = f"{CHECKPOINT_DATABASE} of the leader"


def own_schema(profiles: Mapping[str, Profile], consumer: Profile | None) -> str:
    """Returns the name of the consumer's own database, from the consumer's profile or, without it, from the follower's
    profile."""
    return (consumer or profiles[FOLLOWER]).consumer.schema


def name_on_leader(database: str) -> str:
    """Converts ``database``, a name that the audit uses, to the database's real name on the leader."""
    return CHECKPOINT_DATABASE if database == OF_LEADER else database


def renames(profiles: Mapping[str, Profile], consumer: Profile | None) -> Renames:
    """Returns the consumer's renames, from the consumer's profile or, without it, from the follower's profile."""
    return Renames((consumer or profiles[FOLLOWER]).renames, own=own_schema(profiles, consumer))


def names_in_use(profiles: Mapping[str, Profile], consumer: Profile | None) -> dict[str, str]:
    """Returns the consumer's renames and its own database, as a part of a state's identity."""
    schema = own_schema(profiles, consumer)
    own = {} if schema == CHECKPOINT_DATABASE else {"the consumer's own": schema}
    return dict(renames(profiles, consumer).databases) | own


def with_leaders_names(records: DataFrame, renames: Renames, *, schema: str = CHECKPOINT_DATABASE) -> DataFrame:
    """Renames the databases in ``records`` (see ``input.records.parse``); ``schema`` is the consumer's own database."""
    names = {FOLLOWER: renames.leaders}
    if schema != CHECKPOINT_DATABASE:
        leaders = {
            on_follower: OF_LEADER if on_leader == CHECKPOINT_DATABASE else on_leader
            for on_follower, on_leader in renames.leaders.items()
        }
        moved = {CHECKPOINT_DATABASE: OF_LEADER}
        names = {LEADER: moved, FOLLOWER: moved | leaders | {schema: CHECKPOINT_DATABASE}}
    for side, names_of_side in names.items():
        if names_of_side:
            records = _renamed(records, side, names_of_side)
    return records


def with_lower_case_names(records: DataFrame, side: str) -> DataFrame:
    """Converts the names of databases, tables and views in the records of ``side`` to lower case, as a server with
    ``lower_case_table_names = 1`` stores them. ``records`` is the result of ``input.records.parse``.
    """
    of_side = F.col("side") == side

    def uri(field: Column, *, whole: Column) -> Column:
        parts = F.split(field, "/")
        last = F.slice(parts, 5, 1)
        names = F.when(whole, F.transform(last, _lower_segment)).otherwise(last)
        database = _lower_segment(F.element_at(parts, 4))
        return F.when(field.isNotNull(), F.concat_ws("/", F.slice(parts, 1, 3), database, names))

    def lowered(each: Column) -> Column:
        whole = each["action"].rlike("(Table|View|Index)$")
        fields = (uri(each[name], whole=whole).alias(name) for name in ("uri", "to", "like"))
        return F.struct(each["action"].alias("action"), *fields)

    affects = F.transform("affects", lowered)
    names = {name: F.when(of_side, _lower(F.col(name))).otherwise(F.col(name)) for name in ("database", "table")}
    return records.withColumns(names | {"affects": F.when(of_side, affects).otherwise(F.col("affects"))})


def _lower(name: Column) -> Column:
    return F.translate(name, "".join(FOLDED), "".join(FOLDED.values()))


def _lower_segment(segment: Column) -> Column:
    """Converts the name in ``segment``, a percent-encoded segment of a URI, to lower case."""
    encoded = F.url_encode(_lower(F.url_decode(segment)))
    for java, ours in (("+", "%20"), ("*", "%2A"), ("%7E", "~")):
        encoded = F.replace(encoded, F.lit(java), F.lit(ours))
    return F.when(segment.contains("%"), encoded).otherwise(_lower(segment))


def _renamed(records: DataFrame, side: str, names: Mapping[str, str]) -> DataFrame:
    """Renames the databases in the ``records`` of ``side``; ``names`` maps old names to new names."""
    of_side = F.col("side") == side
    segments = {_segment(old): _segment(new) for old, new in names.items()}

    def uri(field: Column) -> Column:
        parts = F.split(field, "/")
        database = _mapped(F.element_at(parts, 4), segments)
        renamed = F.concat_ws("/", F.slice(parts, 1, 3), database, F.slice(parts, 5, 1))
        return F.when(field.isNotNull(), renamed)

    affects = F.transform(
        "affects",
        lambda each: F.struct(
            each["action"].alias("action"), *(uri(each[name]).alias(name) for name in ("uri", "to", "like"))
        ),
    )
    return records.withColumns({
        "database": F.when(of_side, _mapped(F.col("database"), names)).otherwise(F.col("database")),
        "affects": F.when(of_side, affects).otherwise(F.col("affects")),
    })  # fmt: skip


def _mapped(name: Column, names: Mapping[str, str]) -> Column:
    """Returns the value of ``name`` in ``names``, or ``name`` itself if it is not a key."""
    pairs = [F.lit(each) for pair in names.items() for each in pair]
    return F.coalesce(F.try_element_at(F.create_map(*pairs), name), name)


def _segment(database: str) -> str:
    """Encodes a database's name as a segment of a URI."""
    return str(Uri("", database)).rpartition("/")[2]
