"""Writes the three profiles for a sandbox. With the default ports they equal the profiles in the repository, unless the
sandbox is secured.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import toml

from cdc.sandbox.server.mysql import PASSWORD, USER
from cdc.service.private_files import write_text

__all__ = ["TOPIC", "ProfileFiles", "Secured"]

_RESOURCE = "mysql-srv1"
TOPIC = "rust-mysql-cdc"


@dataclass(frozen=True, slots=True)
class Secured:
    """The logins in the profiles of a secured sandbox: the MySQL users of the three programs and their password, the
    file with the authority's certificate, and the properties for librdkafka.
    """

    producer: str
    consumer: str
    follower: str
    password: str
    authority: Path
    librdkafka: dict[str, str]


@dataclass(frozen=True, slots=True)
class ProfileFiles:
    """The paths of three profiles: for the leader's producer, for the consumer, and for the follower's producer."""

    producer: Path
    consumer: Path
    follower: Path

    @classmethod
    def below(cls, folder: Path) -> Self:
        """Returns the paths of the profiles in ``folder``."""
        return cls(*(folder / f"{name}_profile.toml" for name in ("producer", "consumer", "follower")))

    def write(self, *, leader_port: int, follower_port: int, kafka_port: int, secured: Secured | None = None) -> None:
        """Writes the files. Existing files are overwritten."""
        for path, content in (
            (self.producer, _content(_RESOURCE, leader_port, ["flvDb"], kafka_port, TOPIC)),
            (self.consumer, _content(_RESOURCE, follower_port, [], kafka_port, TOPIC)),
            (
                self.follower,
                _content(f"{_RESOURCE}-follower", follower_port, ["flvDb", "cdc"], kafka_port, f"{TOPIC}-follower"),
            ),
        ):
            if secured is not None:
                user = getattr(secured, path.name.removesuffix("_profile.toml"))
                content["database"] |= {"user": user, "password": secured.password}
                content["database"]["tls"] = {"ca": str(secured.authority)}
                content["kafka"]["librdkafka"] = secured.librdkafka
            write_text(path, toml.dumps({key: value for key, value in content.items() if value}))


def _content(resource: str, port: int, databases: list[str], kafka_port: int, topic: str) -> dict[str, Any]:
    return {
        "mysql_resource_name": resource,
        "database": {"ip_or_host": "127.0.0.1", "port": port, "user": USER, "password": PASSWORD},
        "filters": {"include_dbs": databases} if databases else {},
        "kafka": {"bootstrap_servers": f"127.0.0.1:{kafka_port}", "topic": topic},
    }
