"""Why an audit can't judge: each reason that would make its verdict a guess, in words for the user."""

from collections.abc import Iterator, Mapping, Sequence

from cdc.config.filters import Filters, filtered_name
from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.model.uri import Uri
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.renaming import named
from cdc.spark.schema.definitions import renamed_statement
from cdc.spark.schema.lineage import Act
from cdc.spark.schema.scope import Scope
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.integrity import Integrity
from cdc.spark.streams.watermark import Watermark
from cdc.sql.effects import LEADER_ONLY

__all__ = ["doubts"]

_LISTED = 10


def doubts(
    profiles: Mapping[str, Profile],
    contents: Mapping[str, Contents],
    mark: Watermark,
    sound: Integrity,
    *,
    scope: Scope,
    renames: Renames,
    acts: Mapping[str, Sequence[Act]],
    lost: tuple[int, int] | None,
    limits: Mapping[str, int | None],
) -> list[str]:
    """The reasons, none when the audit can judge. ``profiles``, ``contents`` and ``acts`` are per side.

    ``lost`` are the leader sequences (after, up to) that the follower's log does not show, see ``watermark.hole``;
    ``limits`` the sequences before which all records were to be read, where that is known (``brokers.Span``).
    """
    found = [*_breaks(profiles, sound)]
    for side, profile in profiles.items():
        found += _contents(profile, contents.get(side), limits[side])
    found += _capture(profiles[FOLLOWER], contents.get(LEADER), acts.get(LEADER, ()), scope, renames)
    if not any(found):
        found += _watermark(profiles, contents.get(LEADER), mark)
    if not any(found):
        found += _log(profiles[FOLLOWER].kafka.topic, mark, lost)
    if not any(found) and not renames:
        found += _names(acts, profiles[LEADER].mysql_resource_name)
    return found


def _breaks(profiles: Mapping[str, Profile], sound: Integrity) -> Iterator[str]:
    for (side, kind), count in sorted(sound.counts.items()):
        first = next(each for each in sound.examples if (each.side, each.kind) == (side, kind))
        yield (
            f"topic {profiles[side].kafka.topic} is broken ({kind}, {count} in all): {first.detail} "
            f"(partition {first.partition}, offset {first.offset})"
        )


def _contents(profile: Profile, contents: Contents | None, limit: int | None) -> Iterator[str]:
    if contents is None:
        return
    topic = profile.kafka.topic
    others = sorted(contents.resources - {profile.mysql_resource_name})
    if others:
        yield f"topic {topic} holds records of {', '.join(others)}, the profile is of {profile.mysql_resource_name}"
    if contents.first:
        yield f"topic {topic} begins at sequence {contents.first}: retention cut what came before; set retention.ms=-1"
    if limit is not None and contents.end + 1 < limit:
        yield f"topic {topic} ends at sequence {contents.end}, its commit log at {limit - 1}: retention cut the rest"


def _capture(
    follower: Profile, leader: Contents | None, acts: Sequence[Act], scope: Scope, renames: Renames
) -> Iterator[str]:
    own = scope.schema
    if not follower.filters.wants_database(own):
        yield f"the follower profile's filters leave out database {own}, where the checkpoint is"
    if scope.lets_in_own and (_has_own(leader, own) or any(_names_database(act, own) for act in acts)):
        yield (
            f"the leader has a database {own}, which to the audit is the consumer's own: with --consumer name the "
            "profile of cdc-consumer, whose filters.exclude_dbs leaves it out or which has another consumer.schema"
        )
    filters, tables = follower.filters, leader.tables if leader else frozenset()
    left_out = {
        f"{database}.{table}"
        for database, table in tables
        if scope.wants_table(database, table) and not filters.wants_table(renames.new(named(database)), table)
    }
    for act in acts:
        if scope.wants(act) and not act.action.endswith(LEADER_ONLY):
            left_out |= _left_out(act, filters, renames)
    if left_out:
        names = ", ".join(sorted(left_out)[:_LISTED])
        yield f"the follower profile's filters leave out what the leader topic has: {names}"


def _has_own(leader: Contents | None, own: str) -> bool:
    return leader is not None and (leader.own or any(database == own for database, _ in leader.tables))


def _names_database(act: Act, database: str) -> bool:
    return any(Uri.parse(uri).database == database for uri in (act.uri, act.to) if uri)


def _left_out(act: Act, filters: Filters, renames: Renames) -> set[str]:
    """What a statement names and the follower's capture does not let in."""
    found = set()
    for uri in (Uri.parse(uri) for uri in (act.uri, act.to) if uri):
        database = renames.new(named(uri.database))
        if not filters.wants(database, filtered_name(act.action, uri.table)):
            found.add(uri.database if uri.table is None else f"{uri.database}.{uri.table}")
    return found


def _log(topic: str, mark: Watermark, lost: tuple[int, int] | None) -> Iterator[str]:
    if mark.begins is not None and mark.begins > -1:
        yield (
            f"topic {topic} begins when the follower was at sequence {mark.begins} of the leader already: "
            "what it had applied by then is in no topic"
        )
    elif lost:
        yield (
            f"topic {topic} does not show how the follower came from sequence {lost[0]} of the leader to {lost[1]}: "
            "its binlog was off, or somebody moved its checkpoint"
        )


def _names(acts: Mapping[str, Sequence[Act]], resource: str) -> Iterator[str]:
    sequence = renamed_statement(acts.get(LEADER, ()), acts.get(FOLLOWER, ()), resource=resource)
    if sequence is not None:
        yield (
            f"the follower ran the leader's sequence {sequence} under other names: name the profile of cdc-consumer, "
            "whose [renames] count, with --consumer"
        )


def _watermark(profiles: Mapping[str, Profile], leader: Contents | None, mark: Watermark) -> Iterator[str]:
    resource, end = profiles[LEADER].mysql_resource_name, leader.end if leader else -1
    if mark.sequence is None or mark.highest is None:
        yield (
            f"topic {profiles[FOLLOWER].kafka.topic} has no checkpoint of {resource}: "
            "cdc-consumer has not run, its consumer.schema is another (--consumer tells it), or the follower's "
            "cdc-producer is behind"
        )
    elif mark.highest > end:
        yield (
            f"the follower is at sequence {mark.highest}, topic {profiles[LEADER].kafka.topic} ends at {end}: "
            "the follower was fed from another topic, or this one was made anew"
        )
    elif mark.highest > mark.sequence:
        yield f"the follower's checkpoint went back from sequence {mark.highest} to {mark.sequence}"
