"""A profile's connection to Kafka as options of Spark's Kafka source."""

from collections.abc import Mapping
from typing import Any

from cdc.config.profile import Kafka
from cdc.errors import UserError

__all__ = ["kafka_options"]

_SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl", "enable.sasl")
_SAME_NAME = frozenset({"security.protocol", "ssl.endpoint.identification.algorithm"})
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def kafka_options(kafka: Kafka) -> dict[str, str]:
    """The options with which Spark's Kafka source connects as the profile's librdkafka properties do.

    Only properties that secure the connection are translated; the others tune librdkafka itself. Raises UserError for
    a security property without a counterpart in the Java client: without it, the connection would be less secure than
    the profile demands.
    """
    options = {"bootstrap.servers": kafka.bootstrap_servers}
    given = {name: str(value) for name, value in kafka.librdkafka.items()}
    for name, value in given.items():
        if not name.startswith(_SECURITY):
            continue
        if name in _SAME_NAME:
            # librdkafka writes "none" where the Java client expects an empty string.
            options[name] = "" if value == "none" else value
        elif name in ("sasl.mechanism", "sasl.mechanisms"):
            options |= _login(value, given)
        elif name == "ssl.ca.location":
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}
        elif name not in ("sasl.username", "sasl.password"):
            raise UserError(
                f"{name} is not supported by the audit",
                where=f"profile key kafka.librdkafka.{name}",
                hint="give the audit separate profiles, with SASL PLAIN or SCRAM, or TLS with ssl.ca.location",
            )
    return {f"kafka.{name}": value for name, value in options.items()}


def _login(mechanism: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """The Java client's options for a SASL login with user and password. Raises UserError for other mechanisms."""
    if mechanism not in _LOGIN_MODULES:
        raise UserError(
            f"SASL mechanism {mechanism} is not supported by the audit",
            where="profile key kafka.librdkafka.sasl.mechanism",
            hint=f"one of {', '.join(_LOGIN_MODULES)}",
        )
    user, password = (_quoted(properties.get(name, "")) for name in ("sasl.username", "sasl.password"))
    entry = f"{_LOGIN_MODULES[mechanism]} required username={user} password={password};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": entry}


def _quoted(text: str) -> str:
    """``text`` as a quoted value of a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
