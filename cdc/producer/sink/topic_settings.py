"""Checks the settings of existing topics: refuses those with which Kafka would delete what the stream needs."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from cdc.errors import UserError
from cdc.kafka.errors import NOT_AUTHORIZED
from cdc.service.logs import event

__all__ = ["described", "note_risks", "require_kept"]

_LOG = logging.getLogger("cdc.producer")
_ANSWER_SECONDS = 10.0
_ENDLESS = "-1"
_HOUR_MS = 3_600_000
_MANY_REPLICAS = 3

Settings = Mapping[str, str]


def described(admin: AdminClient, names: Collection[str]) -> dict[str, Settings]:
    """The settings of each topic, from one request. Raises KafkaException.

    Where we may not ask (DescribeConfigs), that is logged, and the topic is left out.
    """
    if not names:
        return {}
    found: dict[str, Settings] = {}
    wanted = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(names)]
    for resource, answer in admin.describe_configs(wanted, request_timeout=_ANSWER_SECONDS).items():
        try:
            found[resource.name] = {key: str(entry.value) for key, entry in answer.result().items()}
        except KafkaException as error:
            if error.args[0].code() not in NOT_AUTHORIZED:
                raise
            _warn("the settings of a topic can't be checked", topic=resource.name, reason=error.args[0].str())
    return found


def require_kept(name: str, settings: Settings, *, is_log: bool, servers: str) -> None:
    """Raise UserError where Kafka would delete records by key, or a commit log's entries by age."""
    policies = settings.get("cleanup.policy", "").split(",")
    command = f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {name}"
    if not is_log and "compact" in policies:
        raise UserError(
            "the topic is compacted, which leaves only the newest record of each table",
            where=f"topic {name}, setting cleanup.policy",
            hint=f"{command} --add-config cleanup.policy=delete; where records are gone by now, consumers stop at the "
            "gap: then name a new topic in kafka.topic and give the follower a fresh copy of the leader",
        )
    if is_log and "delete" in policies and not _endless(settings):
        raise UserError(
            "the commit log would expire, and with it the position to continue from",
            where=f"topic {name}, setting cleanup.policy",
            hint=f"{command} --add-config cleanup.policy=compact",
        )


def note_risks(name: str, settings: Settings, *, is_log: bool, replicas: int, retention_ms: int) -> None:
    """Log settings that are allowed but risky; ``retention_ms`` is that of the profile."""
    kept_ms = int(settings.get("retention.ms", _ENDLESS))
    expires = kept_ms >= 0 and (retention_ms < 0 or kept_ms < retention_ms)
    if not is_log and (expires or settings.get("retention.bytes", _ENDLESS) != _ENDLESS):
        kept = {"hours": round(kept_ms / _HOUR_MS, 1)} if kept_ms >= 0 else {}
        _warn("the topic's records expire sooner than the profile says", topic=name, **kept,
              bytes=settings.get("retention.bytes", _ENDLESS))  # fmt: skip
    if is_log and "compact" not in settings.get("cleanup.policy", "compact"):
        _warn("the commit log is not compacted: it grows without limit", topic=name)
    if replicas >= _MANY_REPLICAS and settings.get("min.insync.replicas") == "1":
        _warn("a commit waits for only one replica: min.insync.replicas is 1", topic=name, replicas=replicas)


def _endless(settings: Settings) -> bool:
    return all(settings.get(key, _ENDLESS) == _ENDLESS for key in ("retention.ms", "retention.bytes"))


def _warn(what: str, **fields: Any) -> None:
    event(_LOG, what, level=logging.WARNING, **fields)
