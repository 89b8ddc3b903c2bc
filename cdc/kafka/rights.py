"""Queries the brokers for the operations that our user may do on topics and consumer groups; does none of these
operations.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from cdc.errors import CdcError, UserError
from cdc.kafka.admin_clients import admin_client
from cdc.kafka.errors import NO_TOPIC, question_error

__all__ = ["Rights", "missing_rights"]

_ANSWER_SECONDS = 10.0
_LISTED = "docs/deployment.md lists the ACLs of each program"

Rights = Mapping[str, Collection[str]]
"""Maps the names of topics, or of groups, to the operations that a program needs on each."""


def missing_rights(properties: Mapping[str, Any], *, topics: Rights, groups: Rights) -> Iterator[CdcError]:
    """Yields an error for each topic that is missing, and for each operation that an ACL of the brokers does not allow.

    Brokers without an authorizer allow everything. Raises UserError if the brokers do not answer.
    """
    where = f"topic {min(topics)}" if topics else str(properties["bootstrap.servers"])
    try:
        with admin_client(properties) as admin:
            yield from _of_topics(admin, properties, topics)
            yield from _of_groups(admin, groups)
    except KafkaException as error:
        raise question_error(error.args[0], properties, where=where) from None


def _of_topics(admin: AdminClient, properties: Mapping[str, Any], topics: Rights) -> Iterator[CdcError]:
    options: dict[str, Any] = {"include_authorized_operations": True, "request_timeout": _ANSWER_SECONDS}
    answers = admin.describe_topics(TopicCollection(list(topics)), **options) if topics else {}
    for name, answer in sorted(answers.items()):
        try:
            allowed = answer.result().authorized_operations
        except KafkaException as error:
            yield question_error(error.args[0], properties, where=f"topic {name}")
        else:
            yield from _lacking(topics[name], allowed, what="topic", name=name)


def _of_groups(admin: AdminClient, groups: Rights) -> Iterator[CdcError]:
    options: dict[str, Any] = {"include_authorized_operations": True, "request_timeout": _ANSWER_SECONDS}
    answers = admin.describe_consumer_groups(list(groups), **options) if groups else {}
    for name, answer in sorted(answers.items()):
        try:
            allowed = answer.result().authorized_operations
        except KafkaException as error:
            # Newer brokers answer with an error for a group that no client has used yet.
            if error.args[0].code() not in NO_TOPIC and "AUTHORIZATION" in error.args[0].name():
                yield _forbidden(groups[name], what="consumer group", name=name)
        else:
            yield from _lacking(groups[name], allowed, what="consumer group", name=name)


def _lacking(
    wanted: Collection[str], allowed: Collection[AclOperation] | None, *, what: str, name: str
) -> Iterator[CdcError]:
    names = {each.name for each in allowed or ()}
    if allowed and "ALL" not in names and (missing := [each for each in wanted if each not in names]):
        yield _forbidden(missing, what=what, name=name)


def _forbidden(operations: Collection[str], *, what: str, name: str) -> UserError:
    return UserError(
        f"Kafka does not allow our user {', '.join(operations)} on the {what}",
        code="CDC-KAFKA-REFUSES",
        where=f"{what} {name}",
        hint=f"the ACL {', '.join(operations)} on the {what} is missing; {_LISTED}",
    )
