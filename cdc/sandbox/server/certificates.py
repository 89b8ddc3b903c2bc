"""Writes the certificates of a secured sandbox: the certificate of the sandbox's own authority, and the certificate of
a server at 127.0.0.1.
"""

import datetime
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cdc.service.private_files import make_folder, write_text

__all__ = ["Certificates"]

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
