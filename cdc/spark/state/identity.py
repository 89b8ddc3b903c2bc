"""Identifies the topics, renames and filters of a state, and refuses a state of other topics, renames, filters or
format."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.spark.input.renaming import names_in_use

__all__ = ["START_OVER", "identity", "parse_pointer"]

START_OVER = "remove the folder to audit from the beginning, or name another"

_FORMAT = 5  # the format of the folder, independent of the version of cdc
# Maps each older format that can still be read to a function that converts its state.json to the next format.
_UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    # Since format 4, records contain copies of tables; records of earlier audits contain none.
    3: lambda pointer: pointer | {"format": 4},
    # Since format 5, rows contain the before image of their first change; rows of earlier audits do not.
    4: lambda pointer: pointer | {"format": 5},
}


def identity(profiles: Mapping[str, Profile], consumer: Profile | None) -> dict[str, Any]:
    """Collects the format, topics, renames and filters of these profiles. The profiles can use a state only if it was
    saved with equal values.
    """
    found: dict[str, Any] = {"format": _FORMAT}
    for side, profile in profiles.items():
        names = profile.kafka.topics()
        found[f"{side} resource"], found[f"{side} topic"] = profile.mysql_resource_name, profile.kafka.topic
        found[f"{side} layout"] = [names.layout, profile.kafka.prefix]
    found["renames"] = names_in_use(profiles, consumer)
    found["filters of the consumer"] = repr(consumer.filters) if consumer else "unknown"
    return found


def parse_pointer(text: str, identity: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Parses ``text``, the content of state.json. Raises UserError if it is damaged, or if the state has another
    ``identity``."""
    try:
        pointer: dict[str, Any] = json.loads(text)
        while pointer["format"] in _UPGRADES:
            pointer = _UPGRADES[pointer["format"]](pointer)
        saved = {key: pointer[key] for key in identity}
        newer = saved.get("format", 0) > identity.get("format", 0)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"cannot read the state: {error!r}", code="CDC-STATE-DAMAGED", where=where, hint=START_OVER
        ) from None
    if newer:
        raise UserError(
            f"the state was saved by a newer version of cdc, in format {saved['format']}",
            code="CDC-STATE-NEWER",
            where=where,
            hint=f"upgrade cdc; or {START_OVER}",
        )
    for key, value in identity.items():
        if saved[key] != value:
            raise UserError(
                f"the state was saved with {key} {saved[key]!r}, now it is {value!r}",
                code="CDC-STATE-OTHER-SETTINGS",
                where=where,
                hint=START_OVER,
            )
    return pointer
