"""Real catalogs of Iceberg on this machine: Iceberg's own server of its REST protocol, and a Hive metastore."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

from cdc.sandbox.fetch.cache import cached, run_fetch
from cdc.sandbox.server.process import free_port, is_free
from cdc.service.java import require_java
from tests.harness.wait import until

__all__ = ["CatalogServer", "catalog_server"]

_VERSION = "1.10.0"
_DEPENDENCIES = (
    ("org.apache.iceberg", "iceberg-core", _VERSION, ""),
    ("org.apache.iceberg", "iceberg-core", _VERSION, "tests"),
    ("org.apache.iceberg", "iceberg-open-api", _VERSION, "test-fixtures"),
    ("org.eclipse.jetty", "jetty-servlet", "11.0.25", ""),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0", ""),
)
_METASTORE = Path(__file__).with_name("HiveMetastore.java")
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
_LOG = """\
rootLogger.level = error
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
"""


@dataclass(slots=True)
class CatalogServer:
    """A server of the ``kind`` "rest" or "hive", with its catalog and warehouse in ``folder``. It can be stopped, and
    started again with the tables that it had.
    """

    kind: str
    folder: Path
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def uri(self) -> str:
        return f"{'http' if self.kind == 'rest' else 'thrift'}://127.0.0.1:{self.port}"

    @property
    def warehouse(self) -> str:
        return (self.folder / "warehouse").as_uri()

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        command, own = self._rest() if self.kind == "rest" else self._hive()
        with (self.folder / "server.out").open("ab") as out:
            self.process = subprocess.Popen(
                [require_java(os.environ), *_QUICK, *command],
                cwd=self.folder,
                env=os.environ | own,
                stdout=out,
                stderr=out,
            )
        until(lambda: not is_free(self.port), what=f"the catalog of {self.kind}")

    def stop(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def _rest(self) -> tuple[Sequence[str | Path], dict[str, str]]:
        jars = [*cached(f"iceberg-rest-{_VERSION}", _fetch).glob("*.jar"), *_of_spark("hadoop-client-")]
        own = {
            "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
            "CATALOG_URI": f"jdbc:sqlite:{self.folder / 'catalog.db'}",
            "CATALOG_WAREHOUSE": self.warehouse,
            "CATALOG_REST_PORT": str(self.port),
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",  # which has views, too
        }
        return ["-cp", os.pathsep.join(map(str, jars)), "org.apache.iceberg.rest.RESTCatalogServer"], own

    def _hive(self) -> tuple[Sequence[str | Path], dict[str, str]]:
        log = self.folder / "log4j2.properties"
        log.write_text(_LOG)
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.folder / 'catalog'};create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": self.warehouse,
            "datanucleus.connectionPoolingType": "NONE",  # PySpark has the jar of none
        }
        options = [word for name, value in settings.items() for word in ("--hiveconf", f"{name}={value}")]
        opened = [f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in ("lang", "net", "util")]
        jars = os.pathsep.join(map(str, _of_spark("")))
        own = [f"-Dlog4j.configurationFile={log}", *(f"-D{name}={value}" for name, value in settings.items())]
        main = ["-cp", jars, _METASTORE, "-p", str(self.port)]
        return [*own, *opened, *main, *options], {}


@contextmanager
def catalog_server(kind: str, folder: Path) -> Iterator[CatalogServer]:
    """A catalog that runs for as long as the block does."""
    server = CatalogServer(kind, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _of_spark(begin: str) -> list[Path]:
    return sorted((Path(pyspark.__file__).parent / "jars").glob(f"{begin}*.jar"))


def _fetch(folder: Path) -> None:
    # Iceberg publishes the server as a part of its tests, under classifiers of Maven.
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        + (f"<classifier>{classifier}</classifier>" if classifier else "")
        + "</dependency>"
        for group, name, version, classifier in _DEPENDENCIES
    )
    with TemporaryDirectory() as aside:
        pom = Path(aside, "pom.xml")
        pom.write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>cdc</groupId><artifactId>jars</artifactId>"
            f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
        )
        strict: list[str | Path] = ["mvn", "--batch-mode", "--strict-checksums", "-Dstyle.color=never", "--file", pom]
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        run_fetch([*strict, *copy], label="Iceberg's REST catalog", into=folder)
