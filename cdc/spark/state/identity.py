"""What a state is of: which topics, renames and filters, in which format; of anything else it is refused."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.spark.input.renaming import naming

__all__ = ["START_OVER", "identity", "pointer_of"]

START_OVER = "remove the folder to audit from the beginning, or name another"

_FORMAT = 3  # of the folder, whatever version of cdc it is of
# From a format that is still read: what state.json would have in the next one. Any other is refused.
_UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def pointer_of(text: str, identity: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """What ``text``, the content of state.json, says. Raises UserError where it is not of ``identity``."""
    try:
        pointer: dict[str, Any] = json.loads(text)
        while pointer["format"] in _UPGRADES:
            pointer = _UPGRADES[pointer["format"]](pointer)
        wanted = {key: pointer[key] for key in identity}
        newer = wanted.get("format", 0) > identity.get("format", 0)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"cannot read the state: {error!r}", where=where, hint=START_OVER) from None
    if newer:
        raise UserError(f"the state was kept by a newer version of cdc, in format {wanted['format']}",
                        where=where, hint=f"upgrade cdc; or {START_OVER}")  # fmt: skip
    for key, value in identity.items():
        if wanted[key] != value:
            raise UserError(f"the state was kept with {key} {wanted[key]!r}, now it is {value!r}",
                            where=where, hint=START_OVER)  # fmt: skip
    return pointer


def identity(profiles: Mapping[str, Profile], consumer: Profile | None) -> dict[str, Any]:
    """What a state must be of to serve an audit with these profiles."""
    found: dict[str, Any] = {"format": _FORMAT}
    for side, profile in profiles.items():
        names = profile.kafka.topics()
        found[f"{side} resource"], found[f"{side} topic"] = profile.mysql_resource_name, profile.kafka.topic
        found[f"{side} layout"] = [names.layout, profile.kafka.prefix]
    found["renames"] = naming(profiles, consumer)
    found["filters of the consumer"] = repr(consumer.filters) if consumer else "unknown"
    return found
