"""The objects of a server, as it tells them itself, and whether a statement's effects name those that it touched."""

import re
from collections.abc import Iterable
from typing import Any

from cdc.sql.statement import Effect

Place = tuple[str, str, str | None]  # kind, database, name
Objects = dict[Place, tuple[Any, ...]]

_OWN = "('mysql', 'sys', 'information_schema', 'performance_schema')"
_COLUMNS = {
    "schemata_extensions": ("'Database'", "schema_name", "NULL", "options"),
    "schemata": ("'Database'", "schema_name", "NULL", "default_character_set_name", "default_collation_name"),
    "routines": ("routine_type", "routine_schema", "routine_name", "routine_definition", "routine_comment",
                 "security_type", "last_altered"),
    "triggers": ("'Trigger'", "trigger_schema", "trigger_name", "action_statement"),
    "events": ("'Event'", "event_schema", "event_name", "event_definition", "status", "event_comment",
               "interval_value", "last_altered", "definer"),
}  # fmt: skip


def objects(cursor: Any) -> Objects:
    """Every object of the users' databases with what it is like; for a table also who it is, by InnoDB's number."""
    found: Objects = {}
    for table, columns in _COLUMNS.items():
        cursor.execute(f"SELECT {', '.join(columns)} FROM information_schema.{table} WHERE {columns[1]} NOT IN {_OWN}")
        for kind, database, name, *rest in cursor.fetchall():
            place = (kind.capitalize(), database, name)
            found[place] = (*found.get(place, ()), *rest)
    cursor.execute("SELECT name, table_id FROM information_schema.innodb_tables")
    numbers: dict[str, list[int]] = {}
    for file, number in cursor.fetchall():
        table = re.sub("@([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), file.lower().partition("#p#")[0])
        numbers.setdefault(table, []).append(number)
    cursor.execute(
        f"SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema NOT IN {_OWN}"
    )
    for database, name, kind in cursor.fetchall():
        cursor.execute("SHOW CREATE TABLE `{}`.`{}`".format(*(each.replace("`", "``") for each in (database, name))))
        place = ("View" if kind == "VIEW" else "Table", database, name)
        found[place] = (cursor.fetchone()[1], *sorted(numbers.get(f"{database}/{name}", [])))
    return found


def unnamed(effects: Iterable[Effect], before: Objects, after: Objects) -> set[Place]:
    """The objects that have come, gone or changed though the effects do not say so."""
    come = {place for effect in effects for place in _places(effect) if effect.action.startswith("Create")}
    come |= {place for effect in effects if effect.to for place in _renamed(effect, effect.to)}
    gone = {place for effect in effects for place in _places(effect) if effect.action.startswith(("Drop", "Rename"))}
    dropped = {effect.database for effect in effects if effect.action == "DropDatabase"}
    touched = come | gone | {place for effect in effects for place in _places(effect)}
    changed = {place for place in before.keys() & after.keys() if before[place] != after[place]}
    return {
        *(after.keys() - before.keys() - come),
        *(place for place in before.keys() - after.keys() - gone if place[1] not in dropped),
        *(changed - touched),
    }


def unseen(effects: Iterable[Effect], before: Objects, after: Objects) -> list[Effect]:
    """Effects, but for ALTERs, of which nothing is to be seen on the server."""
    different = {place for place in before.keys() | after.keys() if before.get(place) != after.get(place)}
    return [
        effect for effect in effects if not effect.action.startswith("Alter") and not different & set(_places(effect))
    ]


def _places(effect: Effect) -> list[Place]:
    kind = effect.action.removeprefix(next(verb for verb in _VERBS if effect.action.startswith(verb)))
    kinds = {"Index": ["Table"], "Table": ["Table", "View"]}.get(kind, [kind])
    return [(each, effect.database, effect.name) for each in kinds]


def _renamed(effect: Effect, to: tuple[str, str]) -> list[Place]:
    return _places(effect._replace(database=to[0], name=to[1]))


_VERBS = ("Create", "Alter", "Drop", "Rename", "Truncate")
