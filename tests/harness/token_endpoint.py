"""Issues tokens over HTTPS as an identity provider does.

Sources: OAuth 2.0, RFC 6749, section 4.4 (client credentials); JSON Web Tokens, RFC 7519.
"""

import json
import ssl
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from cdc.sandbox.server.secured import Certificates

__all__ = ["TokenEndpoint"]

_MODULES = "org.apache.kafka.common.security.oauthbearer"
_AUDIENCE, _KEY_ID = "kafka", "tests"


class TokenEndpoint:
    """An endpoint that issues tokens for the user ``user``, each valid for ``seconds``. A client asks with ``secret``.
    ``keys`` is the file with the public key, which brokers read; it is written in ``folder``.
    """

    def __init__(self, folder: Path, certificates: Certificates, *, user: str, secret: str, seconds: int) -> None:
        self._user = user
        self._secret = secret
        self._seconds = seconds
        self._certificates = certificates
        self._key = rsa.generate_private_key(65537, 2048)
        self.keys = folder / "keys.json"
        self.last_expiry = 0.0  # of all tokens so far, in seconds since 1970
        self.is_down = False
        numbers = self._key.public_key().public_numbers()
        public = {"kty": "RSA", "kid": _KEY_ID, "alg": "RS256", "use": "sig"}
        public |= {"n": _bytes_of(numbers.n), "e": _bytes_of(numbers.e)}
        self.keys.write_text(json.dumps({"keys": [public]}))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever)

    def start(self) -> None:
        """Starts the endpoint; the certificates must exist by now."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificates.both)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def jvm(self) -> tuple[str, ...]:
        """The options with which a broker's JVM may read the public key."""
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.keys.as_uri()}",)

    def broker_settings(self, listener: str, *, beside: str) -> dict[str, str]:
        """The settings of a broker whose ``listener`` accepts the tokens, until they expire, ``beside`` another
        mechanism.
        """
        prefix = f"listener.name.{listener.lower()}"
        return {
            f"{prefix}.sasl.enabled.mechanisms": f"{beside},OAUTHBEARER",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{_MODULES}.OAuthBearerLoginModule required;",
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
                f"{_MODULES}.OAuthBearerValidatorCallbackHandler"
            ),
            f"{prefix}.oauthbearer.connections.max.reauth.ms": "3600000",
            "sasl.oauthbearer.jwks.endpoint.url": self.keys.as_uri(),
            "sasl.oauthbearer.expected.audience": _AUDIENCE,
        }

    def client_properties(self) -> dict[str, str]:
        """librdkafka's properties for a client that gets its tokens here; those of its connection to brokers are
        missing.
        """
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": self._user,
            "sasl.oauthbearer.client.secret": self._secret,
            "sasl.oauthbearer.token.endpoint.url": f"https://127.0.0.1:{self._server.server_port}/token",
            "https.ca.location": str(self._certificates.authority),
        }

    def answer(self, authorization: str) -> tuple[int, Mapping[str, Any]]:
        """Returns the status and the JSON of the answer to a request."""
        if self.is_down:
            return 503, {"error": "temporarily_unavailable"}
        if b64decode(authorization.removeprefix("Basic ")).decode() != f"{self._user}:{self._secret}":
            return 401, {"error": "invalid_client"}
        now = int(time.time())
        claims = {"sub": self._user, "aud": _AUDIENCE, "iat": now, "exp": now + self._seconds, "scope": "kafka"}
        self.last_expiry = now + self._seconds
        return 200, {"access_token": self._signed(claims), "expires_in": self._seconds, "token_type": "Bearer"}

    def _signed(self, claims: Mapping[str, Any]) -> str:
        head = {"alg": "RS256", "kid": _KEY_ID, "typ": "JWT"}
        text = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        return f"{text}.{_base64(self._key.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes_of(number: int) -> str:
    return _base64(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _handler(endpoint: TokenEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            status, answer = endpoint.answer(self.headers.get("authorization", ""))
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
