"""A profile's librdkafka properties as options of Spark's Kafka source."""

import pytest

from cdc.config.profile import Kafka
from cdc.errors import UserError
from cdc.spark.input.kafka_options import kafka_options


def options(**properties: object) -> dict[str, str]:
    return kafka_options(Kafka(librdkafka={name.replace("_", "."): value for name, value in properties.items()}))


def test_only_properties_that_secure_the_connection_are_translated() -> None:
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
def test_a_security_property_without_a_counterpart_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="not supported by the audit"):
        options(**{name: "x"})


def test_unknown_mechanism_is_refused() -> None:
    with pytest.raises(UserError, match="GSSAPI is not supported"):
        options(sasl_mechanism="GSSAPI")
