"""Finds the places of two kinds of records in the topics: the records to which the checkpoint moves while a follower is
loaded, and the first records after the seed.

The module also checks the requirements of a seed. Both profiles must name the same stream, and the topics must contain
the stream from its first record on.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.profile import Profile
from cdc.consumer.source.reader import Topic
from cdc.consumer.source.record_source import RecordSource
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import UserError
from cdc.model.record import Record
from cdc.seed.stream import Head
from cdc.spark.ddl.lineage import Name, table_name
from cdc.spark.frames.messages import Source
from cdc.spark.input.local_frame import local_frame

__all__ = ["Places", "places", "require_one_stream", "require_whole"]


def require_one_stream(leader: Profile, follower: Profile) -> None:
    """Raises UserError if the profiles name different streams, or contain a setting that a seed does not support."""
    for key, ours, theirs in (
        ("mysql_resource_name", leader.mysql_resource_name, follower.mysql_resource_name),
        ("kafka.topic", leader.kafka.topic, follower.kafka.topic),
        ("kafka.layout", leader.kafka.layout, follower.kafka.layout),
        ("kafka.prefix", leader.kafka.prefix, follower.kafka.prefix),
    ):
        if ours != theirs:
            raise UserError(
                f"the follower's {key} is {theirs!r}, the leader's {ours!r}",
                code="CDC-SEED-PROFILES-DIFFER",
                where="options --leader and --follower",
                hint="name the profiles of the cdc-producer and of the cdc-consumer of one stream",
            )
    if follower.consumer.start:
        raise UserError(
            "a follower that is seeded begins from no copy of the leader",
            code="CDC-SEED-AND-COPY",
            where="profile key consumer.start",
            hint="remove the key from the profile, for cdc-consumer too",
        )


def require_whole(source: Source) -> None:
    """Raises UserError if retention has deleted the first records of the stream."""
    if source.cut:
        raise UserError(
            "retention has deleted the oldest records, among them statements that made the leader's tables",
            code="CDC-SEED-TOPIC-CUT",
            where=f"topic {source.kafka.topic}",
            hint="begin the follower from a copy of the leader (consumer.start), or start over with a new topic that "
            "is kept for ever",
        )


class Places(NamedTuple):
    """The places of records. ``heads`` are the records to which the checkpoint moves, without their rows. ``offsets``
    are the offsets from which a consumer continues after the seed. ``newest`` maps the name of each table to the
    sequence of its newest rows.
    """

    heads: dict[int, Head]
    offsets: dict[TopicIdPartition, int]
    newest: dict[Name, int]


def places(
    topics_of: RecordSource, source: Source, outline: DataFrame, topic: Topic, upto: int,
    statements: Mapping[int, Record],
) -> Places:  # fmt: skip
    """Finds the places in the ``outline`` of ``source``. Raises UserError if the topics lack records."""
    wanted = {upto, *(sequence - 1 for sequence in statements if sequence > 0)}
    found = _of_partitions(outline, upto, wanted).where("count > 0").collect()
    heads = {int(each["sequence"]): Head(*each) for row in found for each in row["heads"] if each is not None}
    count = sum(row["count"] for row in found)
    if count != upto + 1 or heads.keys() != wanted:
        raise UserError(
            f"the topics have {count} records up to sequence {upto}, which are {upto + 1}",
            code="CDC-SEED-RECORDS-MISSING",
            where=f"topic {source.kafka.topic}",
            hint="something has deleted or added records; see cdc-audit",
        )
    places: dict[tuple[str, int], int] = {}
    for row in found:
        name, _, number = row["partition"].rpartition("/")
        following = row["next"]
        places[name, int(number)] = source.span.partitions[name, int(number)][1] if following is None else following
    topics = {topic.name: topic, **topics_of.topics({name for name, _ in places} - {topic.name})}
    offsets = {TopicIdPartition(name, number, topics[name].id): offset for (name, number), offset in places.items()}
    newest = {
        name: each.newest for row in found for each in row["newest"] if (name := table_name(each.uri)) is not None
    }
    return Places(heads, offsets, newest)


def _of_partitions(outline: DataFrame, upto: int, wanted: Collection[int]) -> DataFrame:
    """Aggregates the records of each partition.

    The columns are ``count``, ``next``, ``heads`` and ``newest``. ``count`` is the number of records through ``upto``,
    and ``next`` is the first offset after these records, or NULL. ``heads`` contains the sequence, file, position,
    transaction and ts_us of the records with the ``wanted`` sequences. ``newest`` contains the URI and the newest
    sequence of each table with rows through ``upto``.
    """
    numbers = [{"sequence": each} for each in sorted(wanted)]
    marked = local_frame(outline.sparkSession, numbers, "sequence BIGINT").withColumn("marked", F.lit(True))
    one = F.expr("IF(marked, struct(sequence, file, position, transaction, ts_us), NULL)")
    heads = outline.where("sequence IS NOT NULL").join(F.broadcast(marked), "sequence", "left")
    of_uris = heads.groupBy("partition", "uri").agg(
        F.expr(f"count_if(sequence <= {upto})").alias("count"),
        F.min(F.expr(f"IF(sequence > {upto}, offset, NULL)")).alias("next"),
        F.collect_list(one).alias("heads"),
        F.max(F.expr(f"IF(sequence <= {upto}, sequence, NULL)")).alias("newest"),
    )
    newest = F.expr("IF(uri IS NOT NULL AND newest IS NOT NULL, struct(uri, newest), NULL)")
    return of_uris.groupBy("partition").agg(
        F.sum("count").alias("count"), F.min("next").alias("next"),
        F.flatten(F.collect_list("heads")).alias("heads"), F.collect_list(newest).alias("newest"),
    )  # fmt: skip
