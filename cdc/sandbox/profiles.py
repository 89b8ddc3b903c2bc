"""Writes the three profiles for a sandbox. With the default ports they equal the profiles in the repository."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import toml

from cdc.sandbox.server.mysql import PASSWORD, USER
from cdc.service.private_files import write_text

__all__ = ["ProfileFiles"]

_RESOURCE = "mysql-srv1"
_TOPIC = "rust-mysql-cdc"


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

    def write(self, *, leader_port: int, follower_port: int, kafka_port: int) -> None:
        """Writes the files. Existing files are overwritten."""
        leader_dbs, follower_dbs = ["flvDb"], ["flvDb", "cdc"]
        echo = f"{_RESOURCE}-follower", follower_port, follower_dbs, kafka_port, f"{_TOPIC}-follower"
        write_text(self.producer, _text(_RESOURCE, leader_port, leader_dbs, kafka_port, _TOPIC))
        write_text(self.consumer, _text(_RESOURCE, follower_port, [], kafka_port, _TOPIC))
        write_text(self.follower, _text(*echo))


def _text(resource: str, port: int, databases: list[str], kafka_port: int, topic: str) -> str:
    content = {
        "mysql_resource_name": resource,
        "database": {"ip_or_host": "127.0.0.1", "port": port, "user": USER, "password": PASSWORD},
        "filters": {"include_dbs": databases} if databases else {},
        "kafka": {"bootstrap_servers": f"127.0.0.1:{kafka_port}", "topic": topic},
    }
    return toml.dumps({key: value for key, value in content.items() if value})
