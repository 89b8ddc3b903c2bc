"""The stages of the pipeline, each built from the keys of the profile that it uses."""

from collections.abc import Callable, Iterable
from functools import partial

from cdc.config.filters import Filters, Widened
from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.kafka.follower_places import FollowerPlaces
from cdc.model.commit_entry import Entry, PreparedXa
from cdc.model.position import Position
from cdc.producer import equal_members, partial_json
from cdc.producer.binlog.dump import Dumps
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.leader import Leader, count_different, inspect, objects, update_triggers
from cdc.producer.copy.asked import base_tables, definitions, require_copyable
from cdc.producer.copy.copier import Copier
from cdc.producer.copy.pending import Pending
from cdc.producer.copy.reading import Reading
from cdc.producer.copy.requests import Requests
from cdc.producer.copy.structure import Structures
from cdc.producer.copy_pace.followers import Followers
from cdc.producer.copy_pace.pace import Pace
from cdc.producer.copy_pace.replicas import Replicas
from cdc.producer.decode.decoder import Decoder
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.decode.xa import XaTransactions
from cdc.producer.filter_changes import Asked
from cdc.producer.sink.event_messages import EventMessages
from cdc.producer.sink.router import Router
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.producer.skips import Skips

__all__ = ["asked", "copier", "decoder", "dumps", "event_messages", "former_filters", "leader", "router", "topic_admin"]


def leader(profile: Profile, problems: list[UserError] | None = None) -> Leader:
    """The leader as it is now; ``problems`` as in ``inspect``."""
    database = profile.database
    apply = profile.producer.partial_json == "apply"
    return inspect(database.settings(), name=str(database), partial_json=apply, problems=problems)


def topic_admin(profile: Profile) -> TopicAdmin:
    kafka = profile.kafka
    return TopicAdmin(
        kafka.properties(),
        kafka.topics(),
        partitions=kafka.partitions,
        replicas=kafka.replicas,
        retention_hours=kafka.retention_hours,
        min_insync_replicas=kafka.min_insync_replicas,
    )


def dumps(profile: Profile, leader: Leader) -> Dumps:
    return Dumps(
        profile.database.settings(),
        leader,
        topic=profile.kafka.topic,
        resource=profile.mysql_resource_name,
        server_id=profile.producer.server_id,
        # While the leader writes nothing, only its heartbeats wake the producer to commit a sign of life.
        heartbeat_seconds=min(profile.producer.heartbeat_seconds, profile.producer.alive_seconds),
    )


def decoder(
    profile: Profile,
    leader: Leader,
    entry: Entry,
    filters: Filters,
    *,
    read_again: Callable[[PreparedXa], Iterable[RawEvent]],
    log: Callable[..., None],
) -> Decoder:
    """The decoder of what follows ``entry`` and passes ``filters``; ``read_again`` gives the events of a prepared XA
    transaction."""
    database = profile.database
    ask = partial(update_triggers, database.settings(), name=str(database))
    count = partial(count_different, database.settings(), name=str(database))
    applies = profile.producer.partial_json == "apply"
    return Decoder(
        TableCache(
            wants_table=filters.wants_table,
            collations=leader.collations,
            allow_differences=partial_json.unless_triggers(ask) if applies else partial_json.refuse,
            equal_members=equal_members.asking(count),
        ),
        xa=XaTransactions(entry.prepared, read_again=read_again),
        log=log,
        other_events=profile.kafka.events,
    )


def router(profile: Profile, entry: Entry, filters: Filters, skips: Skips) -> Router:
    """The router of what follows ``entry`` and passes ``filters``."""
    made = Router(
        resource=profile.mysql_resource_name,
        topics=profile.kafka.topics(),
        filters=filters,
        record_bytes=profile.producer.record_bytes,
        next_sequence=entry.next_sequence,
        partial=entry.partial,
    )
    made.skips = skips
    return made


def former_filters(newest: Entry | None) -> dict[str, list[str]] | None:
    """The filters that held up to ``newest``; None where they are not known, or the stream is empty."""
    return None if newest is None or Pending.from_json(newest.copy).structure else newest.filters


def asked(profile: Profile, leader: Leader) -> Asked:
    """What is asked of ``leader`` where the filters were changed."""
    settings = profile.database.settings()

    def require(widened: Widened) -> None:
        require_copyable(leader, definitions(settings, leader.name, base_tables(settings, leader.name, widened)))

    return Asked(partial(objects, settings, name=str(profile.database)), require)


def copier(
    profile: Profile, leader: Leader, entry: Entry, widened: Widened | None, *, log: Callable[..., None]
) -> Copier:
    """What copies the tables that ``entry`` names, after what is ``widened``."""
    settings = profile.database.settings()
    limits = profile.producer
    followers = _followers(profile, log)
    rows, threads = limits.copy_rows_per_second, limits.copy_pause_threads_running
    pace = partial(Pace, rows_per_second=rows, threads_running=threads, followers=followers, log=log)

    def reading() -> Reading:
        structures = Structures(settings, leader, widened or profile.filters)
        replicas = Replicas(limits.replica_addresses(), settings, seconds=limits.copy_pause_replica_seconds, log=log)
        return Reading(settings, name=leader.name, pace=pace(replicas=replicas), read_structure=structures.read)

    pending, kafka = Pending.from_json(entry.copy), profile.kafka
    requests = Requests(kafka.properties(), kafka.topics().copies, resource=profile.mysql_resource_name, taken=pending)
    requests.start()
    wants_table = (widened.then if widened else profile.filters).wants_table
    return Copier(pending, requests=requests, open_reading=reading, wants_table=wants_table, log=log, widened=widened)


def _followers(profile: Profile, log: Callable[..., None]) -> Followers:
    kafka = profile.kafka
    places = FollowerPlaces(kafka.properties(), resource=profile.mysql_resource_name, topic=kafka.topic)
    return Followers(places, limit=profile.producer.copy_ahead_bytes, log=log)


def event_messages(profile: Profile, shown: Position | None) -> EventMessages:
    """The messages of the binlog's other events after ``shown``, used where the decoder gives such events."""
    return EventMessages(resource=profile.mysql_resource_name, topic=profile.kafka.topics().events, shown=shown)
