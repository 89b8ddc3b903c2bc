"""Translates a profile's connection to Kafka into options of Spark's Kafka source."""

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cdc.config.profile import Kafka
from cdc.errors import UserError

__all__ = ["kafka_options"]

_SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl", "enable.sasl")
_MODULES = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
}
_TOKENS = f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
_BEARER = "sasl.oauthbearer."
_PKCS8 = re.compile(r"-----BEGIN (?:ENCRYPTED )?PRIVATE KEY-----([^-]*)-----END")
_PBES2 = bytes.fromhex("06092a864886f70d01050d")  # the object identifier of PBES2, in DER
# A broker delays its answer to a fetch until there are records, by default for up to 500 ms. This wait is useless here,
# since Spark knows at which offset to stop. And it delays the request for the partition's end, which Spark sends on the
# same connection after the marker of a commit.
_MOST_WAIT_MS = "20"
_HINT = "give the audit separate profiles, with SASL PLAIN, SCRAM or OAUTHBEARER, or TLS with PEM files"

Translation = Callable[[str, Mapping[str, str]], dict[str, str]]
"""Translates a property's value to options of the Java client; the second argument contains all properties of the
profile.
"""


def kafka_options(kafka: Kafka) -> dict[str, str]:
    """Returns the options with which Spark's Kafka source connects as librdkafka does with the profile's properties.

    Only properties that secure the connection are translated; other properties tune librdkafka itself. Certificates and
    keys are passed on as text, so that executors need not have their files. Raises UserError for a security property
    without a counterpart in the Java client, since the connection would be less secure than the profile demands, and
    for a file that can't be read.
    """
    options = {"bootstrap.servers": kafka.bootstrap_servers, "fetch.max.wait.ms": _MOST_WAIT_MS}
    given = {name: str(value) for name, value in kafka.librdkafka.items()}
    for name, value in given.items():
        if name.startswith(_SECURITY):
            if name not in _TRANSLATED:
                raise UserError(
                    f"{name} is not supported by the audit", code="CDC-SPARK-SASL", where=_where(name), hint=_HINT
                )
            options |= _TRANSLATED[name](value, given)
    return {f"kafka.{name}": value for name, value in options.items()}


def _where(name: str) -> str:
    return f"profile key kafka.librdkafka.{name}"


def _same(name: str) -> Translation:
    return lambda value, given: {name: value}


def _checks_names(algorithm: str, given: Mapping[str, str]) -> dict[str, str]:
    # librdkafka writes "none" where the Java client expects an empty string.
    return {"ssl.endpoint.identification.algorithm": "" if algorithm == "none" else algorithm}


def _with_the_login(value: str, given: Mapping[str, str]) -> dict[str, str]:
    """Returns no option for a property of the login: ``_login`` translates these properties together."""
    return {}


def _login(mechanism: str, given: Mapping[str, str]) -> dict[str, str]:
    """Returns the Java client's options for a SASL login. Raises UserError for a mechanism that the audit does not
    support.
    """
    if mechanism not in _LOGIN_MODULES:
        raise UserError(
            f"SASL mechanism {mechanism} is not supported by the audit",
            code="CDC-SPARK-SASL",
            where=_where("sasl.mechanism"),
            hint=f"use one of {', '.join(_LOGIN_MODULES)}",
        )
    if mechanism == "OAUTHBEARER":
        return _token_login(given)
    user, password = (given.get(name, "") for name in ("sasl.username", "sasl.password"))
    return {"sasl.mechanism": mechanism} | _jaas(mechanism, {"username": user, "password": password})


def _token_login(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options for a login with a token from an endpoint (OpenID Connect). Raises UserError for another
    method.
    """
    if given.get(f"{_BEARER}method") != "oidc":
        raise UserError(
            'OAUTHBEARER without sasl.oauthbearer.method = "oidc" is not supported by the audit',
            code="CDC-SPARK-OAUTHBEARER",
            where=_where(f"{_BEARER}method"),
            hint=_HINT,
        )
    names = {"client.id": "clientId", "client.secret": "clientSecret", "scope": "scope"}
    entries = {ours: given[f"{_BEARER}{name}"] for name, ours in names.items() if f"{_BEARER}{name}" in given}
    for extension in filter(None, given.get(f"{_BEARER}extensions", "").split(",")):
        name, _, value = extension.partition("=")
        entries[f"extension_{name.strip()}"] = value
    for name, trusted in _OF_THE_ENDPOINT.items():
        if name in given:
            entries |= trusted(given[name], given)
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": _TOKENS,
        "sasl.oauthbearer.token.endpoint.url": given.get(f"{_BEARER}token.endpoint.url", ""),
        **_jaas("OAUTHBEARER", entries),
    }


def _jaas(mechanism: str, entries: Mapping[str, str]) -> dict[str, str]:
    quoted = " ".join(f"{name}={_quoted(value)}" for name, value in entries.items())
    return {"sasl.jaas.config": f"{_LOGIN_MODULES[mechanism]} required {quoted};"}


def _quoted(text: str) -> str:
    """Quotes ``text`` as a value in a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _trusted(pem: str, given: Mapping[str, str]) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}


def _certificate(pem: str, given: Mapping[str, str]) -> dict[str, str]:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": pem}


def _key(name: str) -> Translation:
    def translated(pem: str, given: Mapping[str, str]) -> dict[str, str]:
        if not _java_reads(pem):
            raise UserError(
                "the key is not as Java needs it: PKCS #8, and if it has a password, encrypted with PBES1",
                code="CDC-SPARK-KEY",
                where=_where(name),
                hint="openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in old.pem -out new.pem; without a password: -nocrypt",
            )
        return {"ssl.keystore.type": "PEM", "ssl.keystore.key": pem}

    return translated


def _java_reads(pem: str) -> bool:
    """Whether a key is in PKCS #8 format, and is not encrypted with PBES2, which Kafka's client can read only since
    Java 19."""
    found = _PKCS8.search(pem)
    try:
        return found is not None and _PBES2 not in base64.b64decode(found[1])
    except ValueError:
        return False


def _of_file(name: str, translated: Translation) -> Translation:
    def read(path: str, given: Mapping[str, str]) -> dict[str, str]:
        try:
            pem = Path(path).read_text(encoding="latin-1")
        except OSError as error:
            raise UserError(
                f"cannot read the file: {error}",
                code="CDC-AUDIT-ACCEPT-FILE",
                where=_where(name),
                hint="name a PEM file",
            ) from None
        return translated(pem, given)

    return read


_TRANSLATED: Mapping[str, Translation] = {
    "security.protocol": _same("security.protocol"),
    "ssl.endpoint.identification.algorithm": _checks_names,
    "ssl.ca.location": _of_file("ssl.ca.location", _trusted),
    "ssl.ca.pem": _trusted,
    "ssl.certificate.location": _of_file("ssl.certificate.location", _certificate),
    "ssl.certificate.pem": _certificate,
    "ssl.key.location": _of_file("ssl.key.location", _key("ssl.key.location")),
    "ssl.key.pem": _key("ssl.key.pem"),
    "ssl.key.password": _same("ssl.key.password"),
    "sasl.mechanism": _login,
    "sasl.mechanisms": _login,
    "sasl.username": _with_the_login,
    "sasl.password": _with_the_login,
    **{
        f"{_BEARER}{name}": _with_the_login
        for name in ("method", "client.id", "client.secret", "scope", "extensions", "token.endpoint.url")
    },
}

# Certificates that the client trusts at the endpoint of its tokens.
_OF_THE_ENDPOINT: Mapping[str, Translation] = {
    "https.ca.location": _of_file("https.ca.location", _trusted),
    "https.ca.pem": _trusted,
}
