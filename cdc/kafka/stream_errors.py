"""What the brokers' errors mean for the stream."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from cdc.errors import CdcError, PromiseError, Unreachable, UserError
from cdc.kafka.errors import NO_ANSWER, reason

__all__ = ["NO_TOPIC", "fault", "gone", "passes", "unreachable"]

NO_TOPIC = frozenset({
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
})  # fmt: skip
_LOST_PLACE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_REFUSED = frozenset({
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL,
})  # fmt: skip


def fault(error: KafkaError, where: str) -> CdcError | None:
    """What waiting does not mend; None for any other error."""
    code = error.code()
    if code in _LOST_PLACE or code in NO_TOPIC:
        return PromiseError(
            f"the place in the topic is gone while reading: {error.str()}",
            where=where,
            hint="retention has cut the topic or it was deleted; start again for a check against the checkpoint",
        )
    if code in _REFUSED:
        return UserError(f"Kafka refuses: {error.str()}", where=where, hint="check kafka.librdkafka and the ACLs")
    return None


def unreachable(error: KafkaError, servers: str, *, properties: Mapping[str, Any], answered: bool) -> CdcError:
    """Brokers that do not answer, and why.

    Where they have ``answered`` before, the profile is right, and what they refuse now may be waited for.
    """
    why = reason(properties) if error.code() in NO_ANSWER else None
    if why and why.refused and not answered:
        return UserError(f"Kafka refuses the connection: {why.text}", where=servers, hint=why.hint)
    return gone(why.text if why else error.str(), servers, hint=why.hint if why else "")


def gone(text: str, servers: str, *, hint: str = "") -> Unreachable:
    """Brokers that may come back."""
    where = f"{servers} (profile key kafka.bootstrap_servers)"
    return Unreachable(
        f"Kafka cannot be reached: {text}", where=where, hint=hint or "start the broker, or mend the address"
    )


def passes(error: KafkaError) -> bool:
    """Whether librdkafka mends it itself."""
    return bool(error.retriable()) or error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
