"""Addresses of servers in a profile, as host:port."""

import re
from typing import NamedTuple, Self

from cdc.errors import UserError

__all__ = ["ServerAddress"]

# An IPv6 address contains colons itself, and stands in brackets.
_ADDRESS = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\s\[\]]+)):(?P<port>[0-9]{1,5})")
_LARGEST_PORT = 65_535


class ServerAddress(NamedTuple):
    """The address at which a server listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, *, key: str) -> Self:
        """Parses ``host:port``, the value of the profile key ``key``. Raises UserError for other text."""
        found = _ADDRESS.fullmatch(text)
        if not found or not 0 < int(found["port"]) <= _LARGEST_PORT:
            raise UserError(
                f"{text!r} is no address of a server",
                code="CDC-PROFILE-ADDRESS",
                where=f"profile key {key}",
                hint='write host:port, as in "10.0.0.7:3306", and an IPv6 address in brackets',
            )
        return cls(found["bracketed"] or found["host"], int(found["port"]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
