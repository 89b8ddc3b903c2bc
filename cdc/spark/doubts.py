"""Why an audit can't judge: each reason that would make its verdict a guess, in words for the user."""

from collections.abc import Iterator, Mapping

from cdc.filters import CHECKPOINT_DATABASE
from cdc.profile import Profile
from cdc.renames import Renames
from cdc.spark.integrity import Integrity
from cdc.spark.survey import Contents
from cdc.spark.topics import FOLLOWER, LEADER
from cdc.spark.watermark import Watermark

__all__ = ["doubts"]


def doubts(
    profiles: Mapping[str, Profile], contents: Mapping[str, Contents], mark: Watermark, sound: Integrity
) -> list[str]:
    """The reasons, none when the audit can judge. ``profiles`` and ``contents`` are per side."""
    found = [*_breaks(profiles, sound)]
    for side, profile in profiles.items():
        found += _contents(profile, contents.get(side))
    found += _capture(profiles[FOLLOWER], contents.get(LEADER))
    if not any(found):
        found += _watermark(profiles, contents.get(LEADER), mark)
    return found


def _breaks(profiles: Mapping[str, Profile], sound: Integrity) -> Iterator[str]:
    for (side, kind), count in sorted(sound.counts.items()):
        first = next(each for each in sound.examples if (each.side, each.kind) == (side, kind))
        yield (
            f"topic {profiles[side].kafka.topic} is broken ({kind}, {count} in all): {first.detail} "
            f"(partition {first.partition}, offset {first.offset})"
        )


def _contents(profile: Profile, contents: Contents | None) -> Iterator[str]:
    if contents is None:
        return
    topic = profile.kafka.topic
    others = sorted(contents.resources - {profile.mysql_resource_name})
    if others:
        yield f"topic {topic} holds records of {', '.join(others)}, the profile is of {profile.mysql_resource_name}"
    if contents.first:
        yield f"topic {topic} begins at sequence {contents.first}: retention cut what came before; set retention.ms=-1"


def _capture(follower: Profile, leader: Contents | None) -> Iterator[str]:
    if not follower.filters.wants_database(CHECKPOINT_DATABASE):
        yield f"the follower profile's filters leave out database {CHECKPOINT_DATABASE}, where the checkpoint is"
    renames = Renames(follower.renames)
    names = [(renames.new(database), table) for database, table in sorted(leader.tables if leader else [])]
    left_out = [".".join(name) for name in names if not follower.filters.wants_table(*name)]
    if left_out:
        yield f"the follower profile's filters leave out what the leader topic has: {', '.join(left_out)}"


def _watermark(profiles: Mapping[str, Profile], leader: Contents | None, mark: Watermark) -> Iterator[str]:
    resource, end = profiles[LEADER].mysql_resource_name, leader.end if leader else -1
    if mark.sequence is None or mark.highest is None:
        yield (
            f"topic {profiles[FOLLOWER].kafka.topic} has no checkpoint of {resource}: "
            "cdc-consumer has not run, or the follower's cdc-producer is behind"
        )
    elif mark.highest > end:
        yield (
            f"the follower is at sequence {mark.highest}, topic {profiles[LEADER].kafka.topic} ends at {end}: "
            "the follower was fed from another topic, or this one was made anew"
        )
    elif mark.highest > mark.sequence:
        yield f"the follower's checkpoint went back from sequence {mark.highest} to {mark.sequence}"
