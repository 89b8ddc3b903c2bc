"""A profile's librdkafka properties as options of Spark's Kafka source."""

import base64
from pathlib import Path

import pytest

from cdc.config.profile import Kafka
from cdc.errors import UserError
from cdc.spark.input.kafka_options import kafka_options


def options(**properties: object) -> dict[str, str]:
    return kafka_options(Kafka(librdkafka={name.replace("_", "."): value for name, value in properties.items()}))


def test_only_properties_that_secure_the_connection_are_translated() -> None:
    found = options(linger_ms=5, compression_type="zstd")
    assert found == {"kafka.bootstrap.servers": "127.0.0.1:9092", "kafka.fetch.max.wait.ms": "20"}


def test_sasl_and_tls(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("a certificate")
    given = options(
        security_protocol="SASL_SSL",
        sasl_mechanisms="SCRAM-SHA-512",
        sasl_username="ada",
        sasl_password='a"b\\c',
        ssl_ca_location=str(tmp_path / "ca.pem"),
        ssl_endpoint_identification_algorithm="none",
    )
    assert given["kafka.security.protocol"] == "SASL_SSL"
    assert given["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert given["kafka.sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="a\\"b\\\\c";'
    )
    assert (given["kafka.ssl.truststore.type"], given["kafka.ssl.truststore.certificates"]) == ("PEM", "a certificate")
    assert given["kafka.ssl.endpoint.identification.algorithm"] == ""


KEY = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIE\n-----END ENCRYPTED PRIVATE KEY-----\n"


def test_a_clients_certificate_in_files_or_inline(tmp_path: Path) -> None:
    (tmp_path / "chain.pem").write_text("a chain")
    (tmp_path / "key.pem").write_text(KEY)
    in_files = options(
        ssl_certificate_location=str(tmp_path / "chain.pem"), ssl_key_location=str(tmp_path / "key.pem"),
        ssl_key_password="none",
    )  # fmt: skip
    assert in_files == options(ssl_certificate_pem="a chain", ssl_key_pem=KEY, ssl_key_password="none")
    assert (in_files["kafka.ssl.keystore.certificate.chain"], in_files["kafka.ssl.keystore.key"]) == ("a chain", KEY)
    assert (in_files["kafka.ssl.keystore.type"], in_files["kafka.ssl.key.password"]) == ("PEM", "none")


def test_a_key_that_java_does_not_read_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    by_pbes2 = base64.b64encode(bytes.fromhex("30820100305706092a864886f70d01050d304a")).decode()
    for key in (KEY.replace("ENCRYPTED", "RSA"), KEY.replace("MIIE", by_pbes2), KEY.replace("MIIE", "x"), ""):
        with pytest.raises(UserError, match="PKCS #8"):
            options(ssl_key_pem=key)
    with pytest.raises(UserError, match="cannot read the file"):
        options(ssl_ca_location=str(tmp_path / "none"))


def test_a_login_with_a_token() -> None:
    given = options(
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_method="oidc",
        sasl_oauthbearer_client_id="audit",
        sasl_oauthbearer_client_secret='a"b',
        sasl_oauthbearer_scope="read",
        sasl_oauthbearer_extensions="logicalCluster=lkc,pool=p=1",
        sasl_oauthbearer_token_endpoint_url="https://id.example.com/token",
        https_ca_pem="-----BEGIN\nEND-----\n",
    )
    assert given["kafka.sasl.jaas.config"].partition(" required ")[2] == (
        r"""clientId="audit" clientSecret="a\"b" scope="read" extension_logicalCluster="lkc" extension_pool="p=1" """
        r"""ssl.truststore.type="PEM" ssl.truststore.certificates="-----BEGIN\nEND-----\n";"""
    )
    assert given["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://id.example.com/token"
    with pytest.raises(UserError, match='= "oidc" is not supported'):
        options(sasl_mechanism="OAUTHBEARER")


@pytest.mark.parametrize(
    "name", ["ssl_keystore_location", "sasl_oauthbearer_config", "enable_ssl_certificate_verification"]
)
def test_a_security_property_without_a_counterpart_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="not supported by the audit"):
        options(**{name: "x"})


def test_unknown_mechanism_is_refused() -> None:
    with pytest.raises(UserError, match="GSSAPI is not supported"):
        options(sasl_mechanism="GSSAPI")
