"""Reads the profile (the TOML file with all settings of a program) into dataclasses, and parses its start positions;
every key is checked.
"""

import os
import re
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from cdc.config.debezium import CDC, DEBEZIUM, Debezium, require_format, require_mergeable, require_other_topics
from cdc.config.filters import CHECKPOINT_DATABASE, Filters
from cdc.config.renames import Renames, folded_renames, require_own
from cdc.config.toml_tables import build, lacking, output_of, parsed, resolved, resolved_text, text_of
from cdc.config.topic_names import PER_TABLE, SINGLE, Topics
from cdc.errors import UserError
from cdc.model.gtid import GtidSet, executed_before, is_gtid
from cdc.model.names import folded
from cdc.model.position import Position

__all__ = [
    "AUTO",
    "BEGINNING",
    "BOTH_SERVERS",
    "COPY",
    "COPY_KEY",
    "KAFKA_ONLY",
    "MESSAGE_BYTES",
    "MYSQL_ONLY",
    "NOW",
    "OLDEST",
    "WORDS",
    "Consumer",
    "Database",
    "Kafka",
    "Log",
    "Metrics",
    "Producer",
    "Profile",
    "ServerAddress",
    "Tls",
    "Web",
    "load",
    "parsed_copy",
    "parsed_start",
]

# Parses ``producer.start`` and ``consumer.start``.
#
# ``producer.start`` is the place in the binlog at which a producer starts if there is no commit log yet.
# ``consumer.start`` is the GTID set of the base copy with which a follower without a checkpoint began.

WORDS = AUTO, BEGINNING, COPY, OLDEST, NOW = "auto", "beginning", "copy", "oldest", "now"
COPY_KEY = "profile key consumer.start"


def parsed_start(text: str) -> GtidSet | Position:
    """Parses ``producer.start``: the GTID set or binlog position at which a copy of the leader was made.

    Raises UserError for other text.
    """
    if re.fullmatch(r"\S+\.\d+:\d+", text):
        return Position.parse(text)
    try:
        held = _gtids(text)
    except UserError:
        held = GtidSet()
    if not held:
        raise UserError(
            f"{text!r} is not a position to start from",
            code="CDC-PROFILE-START",
            where="profile key producer.start",
            hint=f'"{AUTO}", "{BEGINNING}", "{COPY}", "{OLDEST}", "{NOW}", a GTID set "uuid:1-5" '
            '(of MariaDB "0-1-5"), or "file:offset"',
        )
    return held


def _gtids(text: str) -> GtidSet:
    """Parses a GTID set, or a GTID position of MariaDB, which means all transactions up to it. Raises UserError."""
    is_position = all(is_gtid(gtid.strip()) and ":" not in gtid for gtid in text.split(","))
    return executed_before(text) if is_position else GtidSet.parse(text)


def parsed_copy(text: str) -> GtidSet:
    """Parses ``consumer.start``: the GTIDs of all transactions that the follower's base copy contains. Raises UserError
    for other text."""
    try:
        held = _gtids(text)
    except UserError as error:
        raise UserError(
            error.what, code=error.code, where=COPY_KEY, hint=error.hint or "write uuid:first-last"
        ) from None
    if not held:
        raise UserError(
            f"{text!r} is no GTID set of a copy",
            code="CDC-PROFILE-COPY-GTIDS",
            where=COPY_KEY,
            hint='write the copy\'s GTID set "uuid:1-5", or leave the key out for a follower that begins empty',
        )
    return held


# An IPv6 address must be in brackets, because it contains colons.
_HOST_AND_PORT = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\s\[\]]+)):(?P<port>[0-9]{1,5})")
_LARGEST_PORT = 65_535


class ServerAddress(NamedTuple):
    """The address at which a server listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, *, key: str) -> Self:
        """Parses ``host:port``, the value of the profile key ``key``. Raises UserError for other text."""
        found = _HOST_AND_PORT.fullmatch(text)
        if not found or not 0 < int(found["port"]) <= _LARGEST_PORT:
            raise UserError(
                f"{text!r} is no address of a server",
                code="CDC-PROFILE-ADDRESS",
                where=f"profile key {key}",
                hint='write host:port, as in "10.0.0.7:3306", and an IPv6 address in brackets',
            )
        return cls(found["bracketed"] or found["host"], int(found["port"]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


# The default maximum size of a message. A message with its key and headers must fit into one request, and Kafka's
# brokers limit requests to 104857600 bytes (socket.request.max.bytes).
MESSAGE_BYTES = 100_000_000
# By default librdkafka mistakes an answer of more than 100 MB for a broken connection, and repeats the request for
# ever.
_ANSWER_BYTES = 2_147_483_647
_PASSWORD = "database.password"  # references in this value are resolved at each connection


@dataclass(frozen=True, slots=True)
class Tls:
    """The settings for TLS to the database: the paths of PEM files, and how strictly the server's certificate is
    checked.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: str = field(default="full", metadata={"choices": ("full", "ca", "none")})

    def context(self) -> ssl.SSLContext:
        """Creates the context for TLS connections. Raises UserError if a file cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"a TLS file cannot be used: {error}",
                code="CDC-TLS-FILE",
                where="profile key database.tls",
                hint="ca, cert and key are paths of PEM files",
            ) from None
        context.check_hostname = self.verify == "full"
        context.verify_mode = ssl.CERT_NONE if self.verify == "none" else ssl.CERT_REQUIRED
        return context


@dataclass(frozen=True, slots=True)
class Database:
    """The address of a MySQL server, and the account to use there. The producer reads the binlog of this server; in the
    consumer's profile, the server is the follower.
    """

    ip_or_host: str = "127.0.0.1"
    port: int = field(default=3306, metadata={"range": (1, 65535)})
    hosts: tuple[str, ...] = ()
    user: str = "fluvio"
    password: str = field(default="", repr=False)
    password_env: str = ""
    password_file: str = ""
    password_command: tuple[str, ...] = ()
    tls: Tls | None = None

    def __post_init__(self) -> None:
        """Raises UserError for an invalid address in ``hosts``."""
        for text in self.hosts:
            ServerAddress.parse(text, key="database.hosts")

    def __str__(self) -> str:
        return f"{self.user}@{self.ip_or_host}:{self.port}"

    def addresses(self) -> "list[Database]":
        """Returns this server and those in ``hosts``, each with the same account."""
        others = [ServerAddress.parse(text, key="database.hosts") for text in self.hosts]
        return [replace(self, hosts=()), *(replace(self, hosts=(), ip_or_host=o.host, port=o.port) for o in others)]

    def settings(self) -> dict[str, Any]:
        """Returns the arguments of ``cdc.service.mysql_connection.connected``, which reads the password at each
        connection.

        Raises UserError if a TLS file cannot be read.
        """
        settings: dict[str, Any] = {
            "host": self.ip_or_host,
            "port": self.port,
            "user": self.user,
            "password": self._sent,
            "charset": "utf8mb4",
            "connect_timeout": 10,
        }
        if self.tls:
            settings["ssl"] = self.tls.context()
        return settings

    def _sent(self) -> bytes:
        # The password is sent in UTF-8, because the server reads it in UTF-8 in CREATE USER. pymysql would encode it in
        # latin1.
        return self.secret().encode("utf-8", "surrogateescape")

    def secret(self) -> str:
        """Returns the password from the profile, an environment variable, a file or a command. It is read again at each
        call.

        Raises UserError if the password is missing, and Disconnected if the command fails.
        """
        text = _secret(self, table="database", keys=(*_PASSWORD_KEYS, "password_command"))
        if self.password_command:
            return output_of(self.password_command, key="database.password_command")
        return resolved_text(text, key=_PASSWORD) if self.password else text


_PASSWORD_KEYS = ("password", "password_env", "password_file")


def _secret(given: "Database | Web", *, table: str, keys: Collection[str] = _PASSWORD_KEYS) -> str:
    """Returns the password that the ``table`` of the profile contains or refers to: an environment variable or a file.
    Returns an empty text if there is no password. Raises UserError if more than one of ``keys`` is set.
    """
    used = [key for key in keys if getattr(given, key)]
    if len(used) > 1:
        raise UserError(
            f"{' and '.join(used)} are both set",
            code="CDC-PROFILE-EXCLUSIVE-KEYS",
            where=f"profile key {table}",
            hint="keep one",
        )
    if given.password_env:
        if given.password_env not in os.environ:
            raise UserError(
                f"environment variable {given.password_env} is not set",
                code="CDC-PROFILE-ENVIRONMENT",
                where=f"profile key {table}.password_env",
            )
        return os.environ[given.password_env]
    if given.password_file:
        return text_of(Path(given.password_file), key=f"{table}.password_file").strip("\r\n")
    return given.password


def _check_librdkafka(settings: Mapping[str, Any]) -> None:
    """Raises UserError for a setting of librdkafka that only cdc may set, or that the brokers would not accept."""
    if "transactional.id" in settings:
        raise UserError(
            "the transactional id is cdc-producer's own, made from the topic and the leader's name",
            code="CDC-PROFILE-TRANSACTIONAL-ID",
            where='profile key kafka.librdkafka."transactional.id"',
            hint="leave it out; ACLs for it are in docs/deployment.md",
        )
    largest = settings.get("message.max.bytes", MESSAGE_BYTES)
    # librdkafka would also accept 0x5f5e100. But the brokers receive the value as a setting of the topic, and accept
    # only decimal digits.
    if not str(largest).isdecimal():
        raise UserError(
            f"{largest!r} is no whole number in decimal digits",
            code="CDC-PROFILE-MESSAGE-BYTES",
            where='profile key kafka.librdkafka."message.max.bytes"',
            hint="write it without fraction, sign, blanks or letters: 100000000",
        )


@dataclass(frozen=True, slots=True)
class Kafka:
    """The settings for the brokers, for the topics, and for the creation of topics."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic: str = "rust-mysql-cdc"
    layout: str = field(default=SINGLE, metadata={"choices": (SINGLE, PER_TABLE)})
    tables: tuple[str, ...] = ("*",)
    prefix: str = ""
    events: bool = False
    transactions: bool = True
    partitions: int = field(default=1, metadata={"range": (1, 10_000)})
    replicas: int = field(default=1, metadata={"range": (1, 32767)})
    min_insync_replicas: int = field(default=0, metadata={"range": (0, 32767)})
    retention_hours: int = field(default=0, metadata={"range": (0, 1_000_000)})
    librdkafka: dict[str, Any] = field(default_factory=dict, repr=False)
    format: tuple[str, ...] = (CDC,)

    def __post_init__(self) -> None:
        """Raises UserError for invalid topic names and for keys that contradict one another."""
        names = self.topics()
        require_format(self.format, transactions=self.transactions)
        if self.layout == SINGLE and self.partitions > 1:
            raise UserError(
                "a single topic keeps the leader's order in one partition",
                code="CDC-PROFILE-PARTITIONS",
                where="profile key kafka.partitions",
                hint='leave it out, or set kafka.layout = "per_table"',
            )
        if not self.transactions and (self.layout != SINGLE or self.events):
            raise UserError(
                "without Kafka transactions there is one topic only, which has all records in order",
                code="CDC-PROFILE-TRANSACTIONS",
                where="profile key kafka.transactions",
                hint='leave it out, or set kafka.layout = "single" and leave out kafka.events',
            )
        if self.min_insync_replicas > self.replicas:
            raise UserError(
                f"no record can have {self.min_insync_replicas} replicas in a topic of {self.replicas}",
                code="CDC-PROFILE-REPLICAS",
                where="profile key kafka.min_insync_replicas",
                hint="set it to less than kafka.replicas, so that a broker may be away, or leave it out",
            )
        if self.events and names.events == self.topic:
            raise UserError(
                f"the binlog's events go to a topic of their own, {names.events}",
                code="CDC-PROFILE-EVENTS-TOPIC",
                where="profile key kafka.topic",
                hint="give one of the two another name, with kafka.topic or kafka.prefix",
            )
        _check_librdkafka(self.librdkafka)

    def topics(self) -> Topics:
        """Returns the names of the topics that these settings define."""
        return Topics(self.topic, layout=self.layout, prefix=self.prefix, tables=self.tables)

    def properties(self, **defaults: object) -> dict[str, Any]:
        """Returns the properties for librdkafka. The properties in the profile override ``defaults``. In the names of
        ``defaults``, ``_`` stands for a dot.
        """
        named = {name.replace("_", "."): value for name, value in defaults.items()}
        own = {"receive.message.max.bytes": _ANSWER_BYTES, "bootstrap.servers": self.bootstrap_servers}
        return named | own | self.librdkafka


@dataclass(frozen=True, slots=True)
class Producer:
    """The settings of the producer for reading the binlog and committing to Kafka."""

    start: str = AUTO
    server_id: int = field(default=0, metadata={"range": (0, 4294967295)})
    heartbeat_seconds: int = field(default=1, metadata={"range": (1, 3600)})
    alive_seconds: int = field(default=60, metadata={"range": (1, 86_400)})
    commit_records: int = field(default=10_000, metadata={"range": (1, 1_000_000)})
    commit_bytes: int = field(default=16_000_000, metadata={"range": (1_000, 1_000_000_000)})
    commit_ms: int = field(default=500, metadata={"range": (1, 60_000)})
    dedupe_ms: int = field(default=0, metadata={"range": (0, 10_000)})
    record_bytes: int = field(default=900_000, metadata={"range": (1_000, 100_000_000)})
    message_bytes: int = field(default=8_000_000, metadata={"range": (1_000, 100_000_000)})
    retry_seconds: int = field(default=60, metadata={"range": (0, 86_400)})
    partial_json: str = field(default="refuse", metadata={"choices": ("refuse", "apply")})
    on_unrepeatable: str = field(default="stop", metadata={"choices": ("stop", "copy")})
    standby: bool = False
    copy_rows_per_second: int = field(default=0, metadata={"range": (0, 1_000_000_000)})
    copy_pause_threads_running: int = field(default=0, metadata={"range": (0, 100_000)})
    copy_ahead_bytes: int = field(default=8_000_000, metadata={"range": (0, 1_000_000_000)})
    copy_replicas: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    copy_pause_replica_seconds: int = field(default=10, metadata={"range": (0, 86_400)})

    def __post_init__(self) -> None:
        """Raises UserError for an invalid ``start`` or address."""
        if self.start not in WORDS:
            parsed_start(self.start)
        self.replica_addresses()

    def replica_addresses(self) -> list[ServerAddress]:
        """Returns the addresses of the replicas that a table copy must not delay: the copy pauses while they lag."""
        return [ServerAddress.parse(text, key="producer.copy_replicas") for text in self.copy_replicas]


@dataclass(frozen=True, slots=True)
class Consumer:
    """The settings of the consumer for applying records."""

    on_conflict: str = field(default="converge", metadata={"choices": ("converge", "stop")})
    on_refused: str = field(default="stop", metadata={"choices": ("stop", "park")})
    before_images: str = field(default="compare", metadata={"choices": ("compare", "ignore")})
    triggers: str = field(default="refuse", metadata={"choices": ("refuse", "drop")})
    batch_rows: int = field(default=5_000, metadata={"range": (1, 1_000_000)})
    connections: int = field(default=2, metadata={"range": (1, 8)})
    delay_seconds: int = field(default=0, metadata={"range": (0, 31_536_000)})
    rows_per_second: int = field(default=0, metadata={"range": (0, 1_000_000_000)})
    retry_seconds: int = field(default=60, metadata={"range": (0, 86_400)})
    schema: str = CHECKPOINT_DATABASE
    engine: str = field(default="keep", metadata={"choices": ("keep", "InnoDB")})
    privileges: str = field(default="server", metadata={"choices": ("server", "schema")})
    standby: bool = False
    start: str = ""

    def __post_init__(self) -> None:
        """Raises UserError for an invalid ``schema`` or ``start``."""
        require_own(self.schema)
        if self.start:
            parsed_copy(self.start)


@dataclass(frozen=True, slots=True)
class Log:
    """The level and format of the log on standard error."""

    level: str = field(default="info", metadata={"choices": ("debug", "info", "warning", "error")})
    format: str = field(default="text", metadata={"choices": ("text", "json")})


_TOKEN_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Metrics:
    """The address at which ``/metrics``, ``/livez``, ``/readyz`` and ``/healthz`` are served; with port 0 they are not
    served. A client that sends the ``token`` may give the program commands there; without a token nobody may.
    """

    host: str = "127.0.0.1"
    port: int = field(default=0, metadata={"range": (0, 65535)})
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Raises UserError for a token that is easy to guess, or that can't be sent in a header of HTTP."""
        token = self.token
        if token and (len(token) < _TOKEN_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token):
            raise UserError(
                f"the token must have at least {_TOKEN_CHARACTERS} characters, all of them ASCII, without blanks",
                code="CDC-PROFILE-TOKEN",
                where="profile key metrics.token",
                hint='make one with openssl rand -hex 24, and keep it out of the profile: token = "${env:CDC_TOKEN}"',
            )


@dataclass(frozen=True, slots=True)
class Web:
    """The settings of the page of ``cdc-web``: its address, its password, and the sources of its content besides the
    servers.

    ``hosts`` are the names, besides ``localhost`` and IP addresses, under which browsers may request the page.
    ``metrics`` is the address at which the page queries the metrics of this profile's program, by default the address
    in ``[metrics]``. ``report`` is the folder of an audit's report, ``cache`` the folder of the index of records.
    """

    listen: str = "127.0.0.1:9000"
    hosts: tuple[str, ...] = ()
    user: str = ""
    password: str = field(default="", repr=False)
    password_env: str = ""
    password_file: str = ""
    metrics: str = ""
    report: str = ""
    cache: str = ""

    def __post_init__(self) -> None:
        """Raises UserError for an invalid address."""
        ServerAddress.parse(self.listen, key="web.listen")
        if self.metrics:
            ServerAddress.parse(self.metrics, key="web.metrics")

    def secret(self) -> str:
        """Returns the password of the page, or "" if none is set. Raises UserError for a missing variable or file."""
        return _secret(self, table="web")


@dataclass(frozen=True, slots=True)
class Profile:
    """A whole profile. ``mysql_resource_name`` is the name of the leader in every URI."""

    mysql_resource_name: str = "mysql-srv1"
    database: Database = field(default_factory=Database)
    filters: Filters = field(default_factory=Filters)
    renames: dict[str, str] = field(default_factory=dict)
    kafka: Kafka = field(default_factory=Kafka)
    producer: Producer = field(default_factory=Producer)
    debezium: Debezium = field(default_factory=Debezium)
    consumer: Consumer = field(default_factory=Consumer)
    log: Log = field(default_factory=Log)
    metrics: Metrics = field(default_factory=Metrics)
    web: Web = field(default_factory=Web)

    def __post_init__(self) -> None:
        """Raises UserError for invalid renames, for a leader's name that Debezium's topics can't have or that would
        give them the names of other topics, and for settings of Debezium's messages that exclude one another.
        """
        Renames(self.renames, own=self.consumer.schema)
        if DEBEZIUM in self.kafka.format:
            prefix = self.debezium_prefix
            require_other_topics(prefix, self.kafka.topics(), more=self.debezium.topics_beside(prefix))
        require_mergeable(self.kafka.format, self.debezium, dedupe_ms=self.producer.dedupe_ms)

    @property
    def debezium_prefix(self) -> str:
        """The name of the leader in Debezium's messages, and the beginning of the names of their topics."""
        return self.debezium.topic_prefix or self.mysql_resource_name

    def folded(self) -> Self:
        """Returns the profile with all names of databases and tables in lower case, for a server with
        ``lower_case_table_names = 1``. Raises UserError if the renames are ambiguous in lower case.
        """
        return replace(
            self,
            filters=self.filters.folded(),
            renames=folded_renames(self.renames),
            kafka=replace(self.kafka, tables=tuple(map(folded, self.kafka.tables))),
            consumer=replace(self.consumer, schema=folded(self.consumer.schema)),
        )

    @classmethod
    def parse(cls, text: str, *, name: str) -> Self:
        """Parses the text of a profile; ``name`` is the file's name in errors. Raises UserError."""
        return cls._of(parsed(text, name=name), name=name)

    @classmethod
    def _of(cls, content: dict[str, Any], *, name: str) -> Self:
        try:
            profile: Self = build(cls, resolved(content, later=(_PASSWORD,)), tables=_TABLES, removed=_REMOVED)
        except UserError as error:
            raise UserError(error.what, code=error.code, where=f"{name}, {error.where}", hint=error.hint) from None
        if not profile.mysql_resource_name:
            raise UserError(
                "the resource name is empty",
                code="CDC-PROFILE-RESOURCE-NAME",
                where=f"{name}, profile key mysql_resource_name",
            )
        return profile


KAFKA_ONLY, MYSQL_ONLY, BOTH_SERVERS = ("kafka",), ("database",), ("database", "kafka")
"""The servers to which a program connects, for the function ``load``."""


def load(path: Path, *, servers: Collection[str] = (), key: str = "PROFILE") -> Profile:
    """Reads the profile from a file, which ``key`` names. The file must contain the address of each server in
    ``servers`` (names of the profile's tables).

    Raises UserError for a missing file, broken TOML, an unknown key, a wrong type or value, or a table without any key.
    """
    content = parsed(text_of(path, key=key), name=str(path))
    profile = Profile._of(content, name=str(path))
    if any(not content.get(table) for table in servers):
        # With default addresses the program could reach a server other than the intended server, or wait for a server
        # that does not exist.
        wanted = lacking(content, [*_RESOURCE, *(key for table in servers for key in _ADDRESS[table])])
        raise UserError(
            f"the profile lacks {', '.join(wanted)}",
            code="CDC-PROFILE-INCOMPLETE",
            where=str(path),
            hint="set them; docs/profile.md has all keys, producer_profile.toml is an example",
        )
    return profile


_RESOURCE: tuple[str, ...] = ("mysql_resource_name",)
_ADDRESS: dict[str, tuple[str, ...]] = {
    "database": ("database.ip_or_host", "database.port", "database.user"),
    "kafka": ("kafka.bootstrap_servers", "kafka.topic"),
}
_TABLES: dict[str, Any] = {
    "database": Database,
    "tls": Tls,
    "filters": Filters,
    "kafka": Kafka,
    "producer": Producer,
    "debezium": Debezium,
    "consumer": Consumer,
    "log": Log,
    "metrics": Metrics,
    "web": Web,
}
_REMOVED = {
    "binlog_index_file": "remove it: the position is in Kafka, in the commit log of the topic",
    "resume_file": "remove it: the position is in Kafka, in the commit log of the topic",
    "fluvio": "rename the table [fluvio] to [kafka]",
}
