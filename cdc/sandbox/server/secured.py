"""Secures the servers of a sandbox: certificates, TLS and least-privilege users for MySQL; TLS, logins and ACLs for
Kafka.
"""

import datetime
import secrets
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cdc.sandbox.server.mysql import MySql, grants
from cdc.sandbox.server.process import free_port
from cdc.service.private_files import make_folder, write_text

__all__ = ["LOGIN", "SECRET", "Certificates", "SecuredBroker", "create_account", "tls_options"]

# Writes the certificates of a secured sandbox: the certificate of the sandbox's own authority, and the certificate of a
# server at 127.0.0.1.

_LIFETIME = datetime.timedelta(days=3650)
_ADDRESS = IPv4Address("127.0.0.1")


class Certificates:
    """The files in a folder: ``authority`` and ``server`` are certificates, ``key`` is the server's key, and ``both``
    contains the server's certificate and key in one file, as Kafka expects them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority, self.server, self.key, self.both = (
            folder / name for name in ("ca.pem", "server.crt", "server.key", "server.pem")
        )

    def write(self, *, lifetime: datetime.timedelta = _LIFETIME) -> None:
        """Writes the files, unless they exist. The server's certificate expires after ``lifetime``."""
        if self.both.exists():
            return
        make_folder(self.folder)
        signing, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        name = _named("cdc-sandbox CA")
        authority = _builder(name, name, signing.public_key(), _LIFETIME)
        authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        authority = authority.add_extension(usage, critical=True)
        of_server = _builder(_named("cdc-sandbox server"), name, own.public_key(), lifetime)
        addresses = x509.SubjectAlternativeName([x509.IPAddress(_ADDRESS)])
        of_server = of_server.add_extension(addresses, critical=False)
        of_server = of_server.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        certificate = of_server.sign(signing, SHA256()).public_bytes(Encoding.PEM).decode()
        key = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        write_text(self.authority, authority.sign(signing, SHA256()).public_bytes(Encoding.PEM).decode())
        write_text(self.server, certificate)
        write_text(self.key, key)
        write_text(self.both, key + certificate)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + lifetime)
    )


SECRET, LOGIN = "sandbox-secret", "cdc"
_PASSWORD_OF_FILES = "choose-a-password"
_ADMIN = "sandbox-admin"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_ANSWER_SECONDS = 60


def tls_options(certificates: Certificates) -> tuple[str, ...]:
    """Returns the options of a MySQL server that accepts connections over TCP only with TLS."""
    return (
        "--require-secure-transport=ON",
        f"--ssl-ca={certificates.authority}",
        f"--ssl-cert={certificates.server}",
        f"--ssl-key={certificates.key}",
    )


def create_account(server: MySql, name: str) -> str:
    """Creates the user in the SQL file ``name`` with its grants, unless the user exists; returns the user's name. The
    user's password is SECRET.
    """
    text = grants(name).read_text(encoding="utf-8").replace(_PASSWORD_OF_FILES, SECRET)
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    statements = [each.strip() for each in "\n".join(lines).split(";\n") if each.strip()]
    user = next(each for each in statements if each.startswith("CREATE USER")).split("'")[1]
    with server.root() as connection, connection.cursor() as cursor:
        if not cursor.execute("SELECT 1 FROM mysql.user WHERE user = %s", [user]):
            for statement in statements:
                cursor.execute(statement.removesuffix(";"))
    return user


class SecuredBroker:
    """The security settings of a broker: clients log in as the user LOGIN with SCRAM over TLS, and ACLs decide what
    this user may do.

    The broker itself and this process use a second listener, with a new random password for each start.
    """

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._password = secrets.token_hex(16)
        self._port = free_port()

    def settings(self, *, port: int, controller_port: int) -> Mapping[str, str]:
        """Returns the broker's properties."""
        login = f'{_PLAIN} username="{_ADMIN}" password="{self._password}" user_{_ADMIN}="{self._password}";'
        return {
            "listeners": f"SECURED://127.0.0.1:{port},INNER://127.0.0.1:{self._port},"
            f"CONTROLLER://127.0.0.1:{controller_port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INNER:SASL_PLAINTEXT,SECURED:SASL_SSL",
            "inter.broker.listener.name": "INNER",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.inner.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.inner.plain.sasl.jaas.config": login,
            "listener.name.secured.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.secured.scram-sha-512.sasl.jaas.config": _SCRAM,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificates.both),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{_ADMIN};User:ANONYMOUS",
        }

    def admin_properties(self) -> dict[str, Any]:
        """Returns librdkafka's properties for a client that may do everything."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self._port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": _ADMIN,
            "sasl.password": self._password,
        }

    def client_properties(self) -> dict[str, str]:
        """Returns librdkafka's properties for the programs' profiles, without the address."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": LOGIN,
            "sasl.password": SECRET,
            "ssl.ca.location": str(self._certificates.authority),
        }

    def allow(self, *, topics: str) -> None:
        """Creates the user LOGIN with the ACLs that docs/deployment.md lists, on topics whose names begin with
        ``topics``.
        """
        admin = AdminClient(self.admin_properties())
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        user = UserScramCredentialUpsertion(LOGIN, scram, SECRET.encode())
        for answer in admin.alter_user_scram_credentials([user]).values():
            answer.result(_ANSWER_SECONDS)
        allowed = [
            (ResourceType.TOPIC, topics, operation)
            for operation in (
                AclOperation.CREATE, AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS,
            )
        ]  # fmt: skip
        allowed += [(ResourceType.GROUP, "cdc-", AclOperation.READ)]
        allowed += [(ResourceType.TRANSACTIONAL_ID, "cdc-producer:", AclOperation.WRITE)]
        bindings = [
            AclBinding(kind, name, ResourcePatternType.PREFIXED, f"User:{LOGIN}", "*", each, AclPermissionType.ALLOW)
            for kind, name, each in allowed
        ]
        for answer in admin.create_acls(bindings).values():
            answer.result(_ANSWER_SECONDS)
