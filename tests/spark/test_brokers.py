"""The profile's librdkafka properties in the names of Spark's Kafka source."""

import pytest

from cdc.config.profile import Kafka
from cdc.errors import UserError
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.spans import Span


def options(**properties: object) -> dict[str, str]:
    return kafka_options(Kafka(librdkafka={name.replace("_", "."): value for name, value in properties.items()}))


def test_only_what_secures_the_connection_is_carried_over() -> None:
    assert options(linger_ms=5, compression_type="zstd") == {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def test_sasl_and_tls() -> None:
    given = options(
        security_protocol="SASL_SSL",
        sasl_mechanisms="SCRAM-SHA-512",
        sasl_username="ada",
        sasl_password='a"b\\c',
        ssl_ca_location="/etc/ca.pem",
        ssl_endpoint_identification_algorithm="none",
    )
    assert given["kafka.security.protocol"] == "SASL_SSL"
    assert given["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert given["kafka.sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="a\\"b\\\\c";'
    )
    assert (given["kafka.ssl.truststore.type"], given["kafka.ssl.truststore.location"]) == ("PEM", "/etc/ca.pem")
    assert given["kafka.ssl.endpoint.identification.algorithm"] == ""


@pytest.mark.parametrize("name", ["ssl_key_location", "sasl_oauthbearer_config", "enable_ssl_certificate_verification"])
def test_security_that_has_no_counterpart_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="not supported by the audit"):
        options(**{name: "x"})


def test_a_span_after_what_was_audited() -> None:
    place = ("topic", 0)
    assert Span({place: (3, 9)}).after({place: 5}) == Span({place: (5, 9)})
    assert Span({place: (5, 9), ("new", 0): (2, 4)}).after({place: 5}) == Span({place: (5, 9), ("new", 0): (2, 4)})
    with pytest.raises(UserError, match="the topic begins at offset 6, the state was saved at offset 5"):
        Span({place: (6, 9)}).after({place: 5})
    with pytest.raises(UserError, match="the topic ends at offset 9, the state was saved at offset 10"):
        Span({place: (3, 9)}).after({place: 10})
    # The ends of Kafka transactions may be what is gone; else the sequences before the limit are not all there.
    assert Span({place: (6, 9)}, 70).after({place: 5}) == Span({place: (6, 9)}, 70)


def test_unknown_mechanism_is_refused() -> None:
    with pytest.raises(UserError, match="GSSAPI is not supported"):
        options(sasl_mechanism="GSSAPI")
