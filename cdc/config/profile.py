"""The profile: one TOML file that says which server, which topic and how; every key checked when it is read."""

import difflib
import os
import re
import ssl
import tomllib
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from cdc.config.filters import CHECKPOINT_DATABASE, Filters
from cdc.config.renames import Renames, require_own
from cdc.config.start_position import BEGINNING, WORDS, parsed_start
from cdc.config.topic_names import PER_TABLE, SINGLE, Topics
from cdc.errors import UserError

__all__ = ["Consumer", "Database", "Kafka", "Log", "Metrics", "Producer", "Profile", "Tls", "load"]

_MOVED = {
    "binlog_index_file": "the position lives in Kafka, in the commit log of the topic",
    "resume_file": "the position lives in Kafka, in the commit log of the topic",
    "fluvio": "rename the table [fluvio] to [kafka]",
}


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS to the database: PEM files, and how far the server's certificate is checked."""

    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: str = field(default="full", metadata={"choices": ("full", "ca", "none")})

    def context(self) -> ssl.SSLContext:
        """What a TLS connection needs. Raises UserError where a file cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"a TLS file cannot be used: {error}",
                where="profile key database.tls",
                hint="ca, cert and key are paths of PEM files",
            ) from None
        context.check_hostname = self.verify == "full"
        context.verify_mode = ssl.CERT_NONE if self.verify == "none" else ssl.CERT_REQUIRED
        return context


@dataclass(frozen=True, slots=True)
class Database:
    """The MySQL server: for the producer the one whose binlog is read, for the consumer the follower."""

    ip_or_host: str = "127.0.0.1"
    port: int = field(default=3306, metadata={"range": (1, 65535)})
    user: str = "fluvio"
    password: str = field(default="", repr=False)
    password_env: str = ""
    password_file: str = ""
    tls: Tls | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.ip_or_host}:{self.port}"

    def settings(self) -> dict[str, Any]:
        """The connection as pymysql's arguments. Raises UserError where the password is not there."""
        settings: dict[str, Any] = {
            "host": self.ip_or_host,
            "port": self.port,
            "user": self.user,
            # As UTF-8, which the server takes it for in CREATE USER; pymysql alone would write it in latin1.
            "password": self.secret().encode("utf-8", "surrogateescape"),
            "charset": "utf8mb4",
            "connect_timeout": 10,
        }
        if self.tls:
            settings["ssl"] = self.tls.context()
        return settings

    def secret(self) -> str:
        """The password, from wherever the profile says it is. Raises UserError when it is not there."""
        given = [key for key in ("password", "password_env", "password_file") if getattr(self, key)]
        if len(given) > 1:
            raise UserError(f"{' and '.join(given)} are both set", where="profile key database", hint="keep one")
        if self.password_env:
            if self.password_env not in os.environ:
                raise UserError(
                    f"environment variable {self.password_env} is not set", where="profile key database.password_env"
                )
            return os.environ[self.password_env]
        if self.password_file:
            return _read(Path(self.password_file), key="database.password_file").strip("\r\n")
        return self.password


@dataclass(frozen=True, slots=True)
class Kafka:
    """The brokers, the topics, and what a topic that is created gets."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic: str = "rust-mysql-cdc"
    layout: str = field(default=SINGLE, metadata={"choices": (SINGLE, PER_TABLE)})
    tables: tuple[str, ...] = ("*",)
    prefix: str = ""
    events: bool = False
    partitions: int = field(default=1, metadata={"range": (1, 10_000)})
    replicas: int = field(default=1, metadata={"range": (1, 32767)})
    min_insync_replicas: int = field(default=0, metadata={"range": (0, 32767)})
    retention_hours: int = field(default=0, metadata={"range": (0, 1_000_000)})
    librdkafka: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Raises UserError for names that no topic can have, and for keys that contradict one another."""
        names = self.topics()
        if self.layout == SINGLE and self.partitions > 1:
            raise UserError(
                "a single topic keeps the leader's order in one partition",
                where="profile key kafka.partitions",
                hint='leave it out, or set kafka.layout = "per_table"',
            )
        if self.min_insync_replicas > self.replicas:
            raise UserError(
                f"no record can have {self.min_insync_replicas} replicas in a topic of {self.replicas}",
                where="profile key kafka.min_insync_replicas",
                hint="set it to less than kafka.replicas, so that a broker may be away, or leave it out",
            )
        if self.events and names.events == self.topic:
            raise UserError(
                f"the binlog's events go to a topic of their own, {names.events}",
                where="profile key kafka.topic",
                hint="give one of the two another name, with kafka.topic or kafka.prefix",
            )

    def topics(self) -> Topics:
        """The names of the topics."""
        return Topics(self.topic, layout=self.layout, prefix=self.prefix, tables=self.tables)

    def properties(self, **defaults: object) -> dict[str, Any]:
        """librdkafka's properties: ``defaults`` (``_`` for ``.``), then what the profile says."""
        named = {name.replace("_", "."): value for name, value in defaults.items()}
        return named | {"bootstrap.servers": self.bootstrap_servers} | self.librdkafka


@dataclass(frozen=True, slots=True)
class Producer:
    """How the producer reads and commits."""

    start: str = BEGINNING
    server_id: int = field(default=0, metadata={"range": (0, 4294967295)})
    heartbeat_seconds: int = field(default=1, metadata={"range": (1, 3600)})
    alive_seconds: int = field(default=60, metadata={"range": (1, 86_400)})
    commit_records: int = field(default=10_000, metadata={"range": (1, 1_000_000)})
    commit_bytes: int = field(default=16_000_000, metadata={"range": (1_000, 1_000_000_000)})
    commit_ms: int = field(default=500, metadata={"range": (1, 60_000)})
    record_bytes: int = field(default=900_000, metadata={"range": (1_000, 100_000_000)})
    retry_seconds: int = field(default=60, metadata={"range": (0, 86_400)})

    def __post_init__(self) -> None:
        """Raises UserError for a start that is none."""
        if self.start not in WORDS:
            parsed_start(self.start)


@dataclass(frozen=True, slots=True)
class Consumer:
    """How the consumer applies."""

    on_conflict: str = field(default="converge", metadata={"choices": ("converge", "stop")})
    before_images: str = field(default="compare", metadata={"choices": ("compare", "ignore")})
    triggers: str = field(default="refuse", metadata={"choices": ("refuse", "drop")})
    batch_rows: int = field(default=5_000, metadata={"range": (1, 1_000_000)})
    connections: int = field(default=2, metadata={"range": (1, 8)})
    retry_seconds: int = field(default=60, metadata={"range": (0, 86_400)})
    schema: str = CHECKPOINT_DATABASE

    def __post_init__(self) -> None:
        """Raises UserError for a schema that can't be."""
        require_own(self.schema)


@dataclass(frozen=True, slots=True)
class Log:
    """What is logged on standard error, and in which form."""

    level: str = field(default="info", metadata={"choices": ("debug", "info", "warning", "error")})
    format: str = field(default="text", metadata={"choices": ("text", "json")})


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where ``/metrics`` and ``/healthz`` are answered; port 0: nowhere."""

    host: str = "127.0.0.1"
    port: int = field(default=0, metadata={"range": (0, 65535)})


@dataclass(frozen=True, slots=True)
class Profile:
    """A whole profile. ``mysql_resource_name`` is the leader's name in every URI."""

    mysql_resource_name: str = "mysql-srv1"
    database: Database = field(default_factory=Database)
    filters: Filters = field(default_factory=Filters)
    renames: dict[str, str] = field(default_factory=dict)
    kafka: Kafka = field(default_factory=Kafka)
    producer: Producer = field(default_factory=Producer)
    consumer: Consumer = field(default_factory=Consumer)
    log: Log = field(default_factory=Log)
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        """Raises UserError for names that no database can get."""
        Renames(self.renames, own=self.consumer.schema)

    @classmethod
    def parse(cls, text: str, *, name: str) -> Self:
        """Read a profile's text; ``name`` is its file for the errors. Raises UserError."""
        try:
            content = tomllib.loads(text)
        # Beside its own error, a ValueError: Python's for a number of more digits than it takes.
        except (ValueError, RecursionError) as error:
            raise UserError(f"broken TOML: {_said(error)}", where=name, hint="mend the file's syntax") from None
        try:
            profile: Self = _build(cls, content, path="")
        except UserError as error:
            raise UserError(error.what, where=f"{name}, {error.where}", hint=error.hint) from None
        if not profile.mysql_resource_name:
            raise UserError("the resource name is empty", where=f"{name}, profile key mysql_resource_name")
        return profile


def _said(error: Exception) -> str:
    """What tomllib says and where, without what it quotes: parts of the file, which may be of a password."""
    if not isinstance(error, tomllib.TOMLDecodeError):
        return "a value is too large, or too deep"
    what, _, place = str(error).rpartition(" (at ")
    what = re.sub(r"""['"(].*""", "", re.sub(r"'([=\]]+)'", r"\1", what), flags=re.DOTALL).strip()
    return f"{what} (at {place}"


def load(path: Path) -> Profile:
    """Read the profile in a file. Raises UserError: no such file, broken TOML, unknown key, wrong type or value."""
    return Profile.parse(_read(path, key="PROFILE"), name=str(path))


def _read(path: Path, *, key: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # with a byte order mark or without: editors on Windows write one
    except FileNotFoundError:
        raise UserError(f"no such file: {path}", where=f"profile key {key}", hint="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}", where=f"profile key {key}") from None


_TABLES: dict[str, Any] = {
    "database": Database,
    "tls": Tls,
    "filters": Filters,
    "kafka": Kafka,
    "producer": Producer,
    "consumer": Consumer,
    "log": Log,
    "metrics": Metrics,
}


def _build(kind: Any, content: dict[str, Any], *, path: str) -> Any:
    known = {f.name: f for f in fields(kind) if f.init}
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{path}{key}"
        if key not in known:
            raise _unknown(key, name, list(known))
        if key in _TABLES:
            if not isinstance(value, dict):
                raise UserError(f"{key} must be a table", where=f"profile key {name}", hint=f"write it as [{name}]")
            values[key] = _build(_TABLES[key], value, path=f"{name}.")
        else:
            values[key] = _checked(known[key], value, name)
    return kind(**values)


def _unknown(key: str, name: str, known: list[str]) -> UserError:
    if key in _MOVED:
        return UserError(
            f"{key} is not used",
            where=f"profile key {name}",
            hint=f"remove it: {_MOVED[key]}" if key != "fluvio" else _MOVED[key],
        )
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return UserError("unknown key", where=f"profile key {name}", hint=f"the nearest known key is {near[0]!r}")


def _checked(spec: Any, value: Any, name: str) -> Any:
    default = spec.default if spec.default is not MISSING else spec.default_factory()
    wanted = type(default)
    # bool is an int in Python, but port = true is a mistake
    if wanted is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UserError("must be a list of strings", where=f"profile key {name}", hint='write ["name"]')
        return tuple(value)
    if not isinstance(value, wanted) or isinstance(value, bool) != (wanted is bool):
        words = {str: "a string", int: "a whole number", bool: "true or false", dict: "a table"}[wanted]
        shown = repr(value) if spec.repr else "the value"  # a secret that was written without quotes
        raise UserError(f"{shown} is not {words}", where=f"profile key {name}", hint=f"write {words}")
    choices = spec.metadata.get("choices")
    if choices and value not in choices:
        raise UserError(f"{value!r} is not known", where=f"profile key {name}", hint=f"one of {', '.join(choices)}")
    low, high = spec.metadata.get("range", (None, None))
    if low is not None and not low <= value <= high:
        raise UserError(f"{value} is out of range", where=f"profile key {name}", hint=f"from {low} to {high}")
    return value
