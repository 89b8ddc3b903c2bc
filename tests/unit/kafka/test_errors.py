"""Which error of ours each of Kafka's errors becomes, for each kind of program."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from cdc.errors import CdcError, Disconnected, Fenced, PromiseError, UserError
from cdc.kafka.errors import is_transient, question_error, read_error, write_error

DENIED = [
    KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
]  # fmt: skip
PASSING = [KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (code, UserError)
        for code in (
            *DENIED,
            KafkaError._INVALID_ARG,
            KafkaError.INVALID_CONFIG,
            KafkaError.POLICY_VIOLATION,
        )
    ]
    + [(code, Fenced) for code in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)]
    + [(code, Disconnected) for code in (*PASSING, KafkaError._STATE, KafkaError._FATAL, KafkaError._TRANSPORT)],
)
def test_what_a_producer_raises(code: int, kind: type[CdcError]) -> None:
    error = write_error(KafkaException(KafkaError(code)), "t")
    assert type(error) is kind
    assert error.where in ("topic t", "profile key kafka.librdkafka")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(code, UserError) for code in (*DENIED, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._SSL)]
    + [(code, PromiseError) for code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE,
                                         KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)]
    + [(code, type(None)) for code in (*PASSING, KafkaError._TRANSPORT)],
)  # fmt: skip
def test_what_a_consumer_raises(code: int, kind: type[CdcError | None]) -> None:
    assert type(read_error(KafkaError(code), "t")) is kind


@pytest.mark.parametrize(
    ("code", "what"),
    [(code, "Kafka refuses") for code in DENIED]
    + [(code, "no such topic") for code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)]
    + [(KafkaError._INVALID_ARG, "Kafka's settings are refused")]
    + [(code, "Kafka does not answer") for code in PASSING],
)
def test_what_a_program_that_asks_once_raises(code: int, what: str) -> None:
    error = question_error(KafkaError(code), {}, where="here")
    assert type(error) is UserError
    assert error.what.startswith(what)


@pytest.mark.parametrize(("code", "transient"), [
    (KafkaError._TRANSPORT, True), (KafkaError._ALL_BROKERS_DOWN, True), (KafkaError._SSL, False),
    (KafkaError.OFFSET_OUT_OF_RANGE, False),
])  # fmt: skip
def test_what_librdkafka_recovers_from(code: int, *, transient: bool) -> None:
    assert is_transient(KafkaError(code)) is transient
