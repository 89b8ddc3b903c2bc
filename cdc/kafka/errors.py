"""Translates a KafkaError into an error of this project (module errors).

Each kind of program has its own functions. A consumer that follows topics uses ``read_error`` and ``unreachable``, a
transactional producer uses ``write_error`` and ``open_error``, and a program that sends single requests uses
``question_error``.
"""

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from cdc.errors import CdcError, Disconnected, Fenced, PromiseError, Unreachable, UserError

__all__ = [
    "DISCONNECTED",
    "NOT_AUTHORIZED",
    "NO_TOPIC",
    "RECORD_REFUSED",
    "SETTING_REFUSED",
    "BrokerLog",
    "brokers_gone",
    "client_error",
    "denied",
    "is_transient",
    "open_error",
    "question_error",
    "read_error",
    "settings_refused",
    "unreachable",
    "write_error",
]

_RUNNING = "are the brokers running, at that address?"
_SECURITY = "check security.protocol, sasl.* and ssl.* in [kafka.librdkafka] against the brokers' listener"
# librdkafka's text always blames the authority, even if the certificate has expired or is for another address.
_CERTIFICATE = "the broker's certificate must be by the authority in ssl.ca.location, not expired, and for this address"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_ASK_SECONDS = 2.0
_LOG_INFO = 6
_STATE = re.compile(r" \(after \d+ms in state \w+.*?\)")
# A broker closes a connection whose first bytes are not what its listener expects. librdkafka logs this, but not as an
# error.
_CLOSED = re.compile(r"[^ ]+: Disconnected.*")


@dataclass(frozen=True, slots=True)
class Reason:
    """The last reason for a failure that librdkafka logged, with a hint; ``refused`` is true if waiting alone does not
    help."""

    text: str
    hint: str = _RUNNING
    refused: bool = False


class BrokerLog(logging.Handler):
    """Collects what librdkafka logs for one client. The client must be created with ``settings`` and ``logger``."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"error_cb": self._on_error, "log_level": _LOG_INFO}
        self.logger = logging.Logger("librdkafka")
        self.logger.addHandler(self)
        self.reason: Reason | None = None
        self.all_down = False

    def emit(self, record: logging.LogRecord) -> None:
        """Notes that a broker closed a connection, unless an error has already set a reason."""
        closed = _CLOSED.search(record.getMessage())
        if closed and self.reason is None:
            text = f"{_STATE.sub('', closed[0])}; it may want another security.protocol"
            self.reason = Reason(text, f"{_RUNNING} If they are, {_SECURITY}")

    def _on_error(self, error: KafkaError) -> None:
        code, text = error.code(), _STATE.sub("", error.str())
        if code == KafkaError._ALL_BROKERS_DOWN:
            self.all_down = True
        elif code in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED):
            self.reason = Reason(text, _SECURITY, refused=True)
        elif code == KafkaError._SSL or "SSL handshake" in text:
            # A broker that is shutting down, or a proxy in front of it, also interrupts handshakes; such an error may
            # be temporary.
            unverified = "verif" in text
            self.reason = Reason(text, f"{_CERTIFICATE}; {_SECURITY}" if unverified else _SECURITY, refused=unverified)
        elif self.reason is None or not self.reason.refused:
            self.reason = Reason(text)


def reason(properties: Mapping[str, Any]) -> Reason | None:
    """Finds the reason why the brokers in ``properties`` (librdkafka's) do not answer, by connecting to them again.

    Returns None if librdkafka logs no reason, either because the brokers answer now, or because packets are lost on the
    way.
    """
    log = BrokerLog()
    client = AdminClient(dict(properties) | log.settings, logger=log.logger)
    give_up = time.monotonic() + _ASK_SECONDS
    while time.monotonic() < give_up and not (log.reason and (log.reason.refused or log.all_down)):
        client.poll(0.1)
    if log.reason is None and (endpoint := properties.get(_ENDPOINT)):
        # librdkafka asks an endpoint that gives no token again and again before it reports that.
        return Reason("no broker, or no token", f"{_RUNNING} Does {endpoint} give tokens?")
    return log.reason


NO_TOPIC = frozenset({
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
})  # fmt: skip
NOT_AUTHORIZED = frozenset({
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
})  # fmt: skip
# With these errors the broker rejects the record itself. MSG_SIZE_TOO_LARGE is not in this set, because it is handled
# separately.
RECORD_REFUSED = frozenset({
    KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD, KafkaError.RECORD_LIST_TOO_LARGE,
})  # fmt: skip
DISCONNECTED = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
_NO_ANSWER = DISCONNECTED | {KafkaError._TIMED_OUT, KafkaError._RESOLVE}
# A failed TLS handshake (_SSL) is not in this set, because a broker that is shutting down also interrupts handshakes.
_DENIED = NOT_AUTHORIZED | {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
SETTING_REFUSED = frozenset({KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION})
_OFFSET_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
# The broker sends these errors if a new producer with the same id has started. It also sends them if it has ended a
# transaction that took too long.
_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_CHECK_ACCESS = "check kafka.librdkafka and the ACLs"
_NOT_SEEN = "cdc-producer creates the topic when it starts; if it exists, the ACL READ on the topic is missing"
_LISTED = "docs/deployment.md lists the ACLs of each program"


def denied(error: KafkaError, *, operation: str, where: str, group: str = "") -> UserError:
    """Returns the error for a request that Kafka's ACLs forbid: ``operation`` on a topic, or the use of the consumer
    ``group``.
    """
    topics = "the topic" if operation == "READ" else "this leader's topics"
    hint = {
        KafkaError.TOPIC_AUTHORIZATION_FAILED: f"the ACL {operation} on {topics} is missing; {_LISTED}",
        KafkaError.GROUP_AUTHORIZATION_FAILED: f"the ACL READ on the consumer group {group} is missing; {_LISTED}",
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the ACL WRITE on the transactional id "
        f"cdc-producer:<kafka.topic>:<mysql_resource_name> is missing; {_LISTED}",
        # Kafka returns this error to an idempotent client without transactions if the client has the ACL WRITE on no
        # topic.
        KafkaError.CLUSTER_AUTHORIZATION_FAILED: f"the ACL WRITE on this leader's topics is missing; {_LISTED}",
    }.get(error.code(), _CHECK_ACCESS)
    return UserError(f"Kafka refuses: {error.str()}", code="CDC-KAFKA-REFUSES", where=where, hint=hint)


def settings_refused(error: KafkaError) -> UserError:
    """Returns the error for properties with which librdkafka refuses to create a client (_INVALID_ARG)."""
    return UserError(
        f"Kafka's settings are refused: {error.str()}",
        code="CDC-KAFKA-SETTINGS",
        where="profile key kafka.librdkafka",
        hint="the names and values are librdkafka's, see its CONFIGURATION.md",
    )


def question_error(error: KafkaError, properties: Mapping[str, Any], *, where: str, group: str = "") -> UserError:
    """Returns the error for a failed request of a program that sends the brokers single requests. ``properties``
    (librdkafka's) name the brokers.
    """
    code = error.code()
    if code in NO_TOPIC:
        return UserError("no such topic", code="CDC-TOPIC-MISSING", where=where, hint=_NOT_SEEN)
    if code == KafkaError._INVALID_ARG:
        return settings_refused(error)
    if code in _DENIED:
        return denied(error, operation="READ", where=where, group=group)
    why = _why(error, properties) or Reason(error.str())
    return UserError(f"Kafka does not answer: {why.text}", code="CDC-KAFKA-NO-ANSWER", where=where, hint=why.hint)


def read_error(error: KafkaError, where: str, *, group: str = "") -> CdcError | None:
    """Returns the error with which a consumer must stop, because waiting does not help; None if waiting may help."""
    code = error.code()
    if code in _OFFSET_GONE or code in NO_TOPIC:
        return PromiseError(
            f"the offset to read next is gone from the topic: {error.str()}",
            code="CDC-TOPIC-OFFSET-GONE",
            where=where,
            hint="retention has removed it, the brokers have lost it, or the topic was deleted; start again, so that "
            "the checkpoint is checked",
        )
    if code in _DENIED or code == KafkaError._SSL:
        return denied(error, operation="READ", where=where, group=group)
    return None


def unreachable(error: KafkaError, servers: str, *, properties: Mapping[str, Any], answered: bool) -> CdcError:
    """Returns the error for a consumer whose brokers do not answer; the error contains the reason.

    If the brokers have ``answered`` before, the profile is right and waiting may help. So even a refused connection is
    then Unreachable; otherwise it is a UserError.
    """
    why = _why(error, properties)
    if why and why.refused and not answered:
        return UserError(
            f"Kafka refuses the connection: {why.text}", code="CDC-KAFKA-REFUSES", where=servers, hint=why.hint
        )
    return brokers_gone(why.text if why else error.str(), servers, hint=why.hint if why else "")


def brokers_gone(text: str, servers: str, *, hint: str = "") -> Unreachable:
    """Returns the error for brokers that can't be reached now, but may answer again later."""
    return Unreachable(
        f"Kafka cannot be reached: {text}",
        code="CDC-KAFKA-NO-ANSWER",
        where=f"{servers} (profile key kafka.bootstrap_servers)",
        hint=hint or "start the broker, or correct the address",
    )


def is_transient(error: KafkaError) -> bool:
    """Whether librdkafka recovers from the error by itself."""
    return bool(error.retriable()) or error.code() in DISCONNECTED


def open_error(error: KafkaException, topic: str, properties: Mapping[str, Any], *, answered: bool) -> CdcError:
    """Returns the error for a producer that is starting. If the brokers do not answer, the error contains the reason;
    for all other errors, returns the result of ``write_error``.

    If the brokers have ``answered`` before, the profile is right and waiting may help. So even a refused connection is
    then Disconnected; otherwise it is a UserError.
    """
    why = _why(error.args[0], properties)
    if why is None:
        return write_error(error, topic)
    where = f"topic {topic} at {properties['bootstrap.servers']}"
    if why.refused and not answered:
        return UserError(
            f"Kafka refuses the connection: {why.text}", code="CDC-KAFKA-REFUSES", where=where, hint=why.hint
        )
    return Disconnected(f"Kafka does not answer: {why.text}", code="CDC-KAFKA-GONE", where=where, hint=why.hint)


def write_error(error: KafkaException, topic: str, *, operation: str = "WRITE") -> CdcError:
    """Returns the error for a producer whose ``operation`` on ``topic`` failed; the operation is WRITE or CREATE. The
    error is a UserError, Fenced or, in all other cases, Disconnected.
    """
    code, text, where = error.args[0].code(), error.args[0].str(), f"topic {topic}"
    if code in NOT_AUTHORIZED:
        return denied(error.args[0], operation=operation, where=where)
    if code in _DENIED or code == KafkaError.TOPIC_EXCEPTION:
        return UserError(
            f"Kafka refuses: {text}",
            code="CDC-KAFKA-REFUSES",
            where=where,
            hint="check [kafka] and its librdkafka table",
        )
    if code in SETTING_REFUSED:
        return UserError(
            f"the brokers refuse a setting of the topic: {text}",
            code="CDC-KAFKA-TOPIC-POLICY",
            where=where,
            hint="if it is max.message.bytes, set message.max.bytes in [kafka.librdkafka] to what the brokers allow",
        )
    if code == KafkaError._INVALID_ARG:
        return settings_refused(error.args[0])
    if code in _FENCED:
        return Fenced(
            "Kafka has fenced this producer: another one has taken over, or a transaction took too long",
            code="CDC-PRODUCER-FENCED",
            where=where,
            hint="run one cdc-producer for each leader and topic",
        )
    if error.args[0].fatal() or code in (KafkaError._FATAL, KafkaError._STATE):
        return Disconnected(f"Kafka's client must start again: {text}", code="CDC-KAFKA-GONE", where=where)
    return Disconnected(
        f"Kafka does not answer: {text}", code="CDC-KAFKA-GONE", where=where, hint="are the brokers running?"
    )


def client_error(error: KafkaException | SystemError, topic: str) -> CdcError:
    """Translates an error of a producer that librdkafka raised inside a callback: to UserError, Fenced or, in all other
    cases, Disconnected.

    If a delivery report raises a fatal error, Python sees it only as the cause of a SystemError. A SystemError with
    another cause is a bug: it is raised again.
    """
    cause = error if isinstance(error, KafkaException) else error.__cause__
    if not isinstance(cause, KafkaException):
        raise error
    return write_error(cause, topic)


def _why(error: KafkaError, properties: Mapping[str, Any]) -> Reason | None:
    return reason(properties) if error.code() in _NO_ANSWER else None
