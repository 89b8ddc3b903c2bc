"""What a seed needs: two profiles of one stream, and a stream that is there from its first record."""

from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.spark.frames.messages import Source

__all__ = ["require_one_stream", "require_whole"]


def require_one_stream(leader: Profile, follower: Profile) -> None:
    """Raises UserError for profiles of different streams, and for settings that a seed does not go with."""
    for key, ours, theirs in (
        ("mysql_resource_name", leader.mysql_resource_name, follower.mysql_resource_name),
        ("kafka.topic", leader.kafka.topic, follower.kafka.topic),
        ("kafka.layout", leader.kafka.layout, follower.kafka.layout),
        ("kafka.prefix", leader.kafka.prefix, follower.kafka.prefix),
    ):
        if ours != theirs:
            raise UserError(
                f"the follower's {key} is {theirs!r}, the leader's {ours!r}",
                where="options --leader and --follower",
                hint="name the profiles of the cdc-producer and of the cdc-consumer of one stream",
            )
    if follower.consumer.start:
        raise UserError(
            "a follower that is seeded begins from no copy of the leader",
            where="profile key consumer.start",
            hint="remove the key from the profile, for cdc-consumer too",
        )


def require_whole(source: Source) -> None:
    """Raises UserError where the stream does not begin with its first record."""
    if source.cut:
        raise UserError(
            "retention has deleted the oldest records, among them statements that made the leader's tables",
            where=f"topic {source.kafka.topic}",
            hint="begin the follower from a copy of the leader (consumer.start), or start over with a new topic that "
            "is kept for ever",
        )
