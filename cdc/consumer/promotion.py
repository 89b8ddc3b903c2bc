"""Promotes a follower to a leader (``cdc-consumer PROFILE --promote``): checks that it has everything, creates the
leader's triggers and events, and prints what must be changed elsewhere.
"""

import json
from collections.abc import Iterable, Iterator

from cdc.config.profile import Profile
from cdc.consumer import preflight
from cdc.consumer.follower.promoted import ServerState, answer, create, server_state
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable
from cdc.consumer.state.status import Status, creation, is_text, read_status
from cdc.errors import UserError
from cdc.kafka.broker_checks import Brokers
from cdc.model.commit_entry import Commits
from cdc.model.gtid import GtidSet
from cdc.service.command_line import CheckList

__all__ = ["first_begin", "promote", "shortcomings"]


def promote(profile: Profile, *, leader: Profile | None) -> int:
    """Promotes the follower; ``leader`` is the producer's profile, None if it was not given. Returns the exit status,
    which is 0, or 2 if something is missing; nothing is changed then.

    Raises UserError if a consumer runs, if a server can't be queried, or if a trigger or event can't be created.
    """
    items, resource, schema = CheckList(), profile.mysql_resource_name, profile.consumer.schema
    newest = Brokers(profile.kafka.properties()).commits(profile.kafka.topics().commits)
    profile = preflight.found_follower(profile)
    # The lock keeps a consumer out: it would apply more, or be stopped by the triggers.
    with Session(profile.database, lock=resource, schema=schema) as session:
        with preflight.answering(str(profile.database)):
            session.connect()
        status = read_status(profile.database, resource=resource, schema=schema)
        state = server_state(profile.database)
        # A replica may have taken the leader's place since, so all of its servers are asked.
        asked = [server_state(each) for each in leader.database.addresses()] if leader is not None else [None]
        leaders = [each for each in asked if each is not None]
        is_lost = leader is not None and not leaders
        for error in shortcomings(status, newest, state=state, leaders=leaders, is_lost=is_lost):
            items.problem(error)
        if items.problems or newest is None or state is None:
            print("nothing was changed; run --promote again when this is done")
            return 2
        items.fine(f"everything in the topic is applied: record {newest.next_sequence - 1} is its last")
        if newest.of_open:
            items.note(
                f"but {newest.of_open} records, with which the topic ends: the rest of their transaction is not in it"
            )
        if newest.copying:
            items.note(f"but a copy of tables has not ended, and they may lack rows: {_named(newest)}", hint=_LACKING)
        if None in asked:
            items.note(_UNKNOWN if leader is None else _SILENT, hint=_LOOK.format(newest.gtid_set))
        else:
            items.fine("the leader takes no writes, and has nothing that is not in the topic")
            if any(each is not None and each.admins_write for each in asked):
                items.note(_ADMINS, hint="on the leader: SET PERSIST super_read_only = ON, then run --promote again")
        wanted = [entry for entry in status.missing if is_text(entry)]
        begins = _begin(profile, sequence=newest.next_sequence, executed=state.executed)
        if begins != state.executed:
            items.note("an earlier --promote began here: the new stream begins at the GTIDs of then")
        existing = create(profile.database, (text for entry in wanted for text in creation(entry)))
        items.fine(f"{len(wanted)} statements about triggers and events were executed, {existing} of them before")
        for entry in status.missing:
            if not is_text(entry):
                items.note("this one has bytes that are no text: create it by hand", hint=entry.statement[:200])
    # The new stream begins before the triggers and events, so that its followers know them for a promotion of theirs.
    print("\n".join(_guide(profile, newest, begins)))
    return 0


# Contains where the stream of a promoted follower begins. A promotion that failed after it had created some of the
# triggers is run again: without this table the stream would begin after these triggers, and after writes of
# applications.
_PROMOTIONS = OwnTable(
    "promotions", "sequence BIGINT NOT NULL COMMENT 'of the next record', gtid_set LONGTEXT NOT NULL"
)


def _begin(profile: Profile, *, sequence: int, executed: GtidSet) -> GtidSet:
    """Returns the GTIDs with which the promoted server begins as a leader: those that the first attempt to promote it
    before the record ``sequence`` has stored, else ``executed``, which are stored.
    """
    database, schema, resource = profile.database, profile.consumer.schema, profile.mysql_resource_name
    wanted = _PROMOTIONS.select(schema, resource, "gtid_set", where=f"sequence={sequence}")
    stored = answer(database, _PROMOTIONS.create(schema), wanted)
    begins = first_begin([GtidSet.parse(text) for (text,) in stored], executed)
    if not stored or begins == executed:
        values = f"({quoted(resource)}, {sequence}, {quoted(str(executed))})"
        answer(database, f"REPLACE INTO {_PROMOTIONS.within(schema)} VALUES {values}")
    return begins


def first_begin(stored: Iterable[GtidSet], executed: GtidSet) -> GtidSet:
    """Returns the GTIDs that an attempt to promote the server has ``stored``; ``executed`` if there was none, or if the
    server has lost these GTIDs since (RESET BINARY LOGS AND GTIDS): it would use them again, for other transactions.
    """
    return next((each for each in stored if not each.minus(executed)), executed)


_UNKNOWN = "the leader was not asked, since --leader names no profile"
_MOST_NAMES = 20
_LACKING = "the leader is lost: delete these tables, or put their rows there from a backup, before applications write"
_ADMINS = "but users with CONNECTION_ADMIN or SUPER can write there, and the follower would lack it"
_SILENT = "the leader can't be asked: what it has committed and the producer has not read is on it only"
_LOOK = "when it is back, and before anything writes there: SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{}') names it"


def shortcomings(
    status: Status,
    newest: Commits | None,
    *,
    state: ServerState | None,
    leaders: Iterable[ServerState],
    is_lost: bool = False,
) -> Iterator[UserError]:
    """Yields the reasons why the follower may not be promoted yet. ``newest`` is the newest entry of the commit log,
    ``leaders`` the states of those servers that are or were the leader and answer. If the leader ``is_lost``, the
    copies of its tables can't end any more.
    """
    if status.applied is None or newest is None:
        yield _problem("this is no follower, or its topic has no commit log", "check the profile")
        return
    # A transaction of which the topic has a part only can never be applied if the leader is gone.
    waiting = newest.next_sequence - newest.of_open - 1 - status.applied.sequence
    if waiting > 0:
        yield _problem(
            f"{waiting} records of the topic are not applied", "run cdc-consumer PROFILE --until-current, then this"
        )
    if newest.copying and not is_lost:
        yield _problem(
            f"a copy of tables has not ended, so rows may be missing: {_named(newest)}",
            "let cdc-producer end the copy (--copy-status); if the leader is lost, name it with --leader",
        )
    if status.open:
        yield _problem(f"{len(status.open)} statements are begun", "start cdc-consumer, which ends or names them")
    if status.parked:
        names = ", ".join(f"{each.database}.{each.table}" for each in status.parked)
        yield _problem(
            f"tables are parked: {names}",
            "have them copied again while the leader is there, or start cdc-consumer with --retry-parked, or drop them",
        )
    if state is None or state.runs_events:
        yield _problem(
            "event_scheduler is ON: an event that has run once would run again",
            "SET PERSIST event_scheduler = OFF; after the promotion disable such events, then set it ON",
        )
    for leader in leaders:
        if not leader.read_only:
            yield _problem("the leader takes writes", "on the leader: SET PERSIST super_read_only = ON")
        if lacking := leader.executed.minus(GtidSet.parse(newest.gtid_set)):
            hint = "run cdc-producer PROFILE --until-current first"
            yield _problem(f"the topic lacks transactions of the leader: {lacking}", hint)


def _named(newest: Commits) -> str:
    names = [f"{database}.{table}" for database, table in newest.copying]
    return ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else "")


def _problem(what: str, hint: str) -> UserError:
    return UserError(what, code="CDC-PROMOTION-NOT-YET", where="--promote", hint=hint)


def _guide(profile: Profile, newest: Commits, executed: GtidSet) -> Iterator[str]:
    """Yields the lines that name what must be changed elsewhere. ``executed`` are the GTIDs with which the promoted
    server begins as a leader.
    """
    database, own = profile.database, json.dumps([profile.consumer.schema])
    yield "The follower is promoted. What is left to do:"
    yield "1. Accounts and grants: copy them from the leader, if they are not here (SHOW CREATE USER, SHOW GRANTS)."
    yield f"2. Applications write to {database.ip_or_host}:{database.port} from now on. Leave this consumer stopped."
    yield "3. Events: disable those AT one time that have run, then SET PERSIST event_scheduler = ON."
    yield "4. A new stream, from this server; before applications write, or with these GTIDs also later:"
    yield "   its producer: a new mysql_resource_name and kafka.topic, the same filters, and"
    yield f"     filters.exclude_dbs = {own} (with the others there), producer.start = {json.dumps(str(executed))}"
    yield "   its followers: copies of this server; or, without a copy, servers with all of the former topic and no"
    yield f"     other writes: the same names, and consumer.start = {json.dumps(str(executed))}"
    yield "5. The former leader can be such a follower, if this is empty there, and triggers and events are dropped:"
    yield f"     SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{newest.gtid_set}')"
