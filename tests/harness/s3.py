"""A real S3 server, moto's, on this machine, and what Spark, deltalake and pyarrow need to reach it."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from cdc.sandbox.fetch.cache import cached, run_fetch
from cdc.sandbox.fetch.jars import fetched_jars
from cdc.sandbox.server.process import free_port, is_free
from tests.harness.wait import until

__all__ = ["ObjectStore", "object_store", "s3_jars"]

_PACKAGE = "moto[server,s3]==5.2.5"
_PROGRAM = "import sys; from moto.server import main; main(sys.argv[1:])"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """The server, with an empty bucket. Any user and password will do."""

    port: int
    bucket: str = "lake"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        """The bucket's address for Hadoop."""
        return f"s3a://{self.bucket}"

    @property
    def spark(self) -> dict[str, str]:
        """Settings of Spark."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "user",
            "spark.hadoop.fs.s3a.secret.key": "password",
        }

    @property
    def deltalake(self) -> dict[str, str]:
        """``storage_options`` of deltalake."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "password",
        }  # fmt: skip


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """The server, for as long as the block runs."""
    store, packages = ObjectStore(free_port()), cached(_PACKAGE, _fetch)
    command = [sys.executable, "-c", _PROGRAM, "-H", "127.0.0.1", "-p", str(store.port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env={"PYTHONPATH": str(packages)}, stdout=quiet, stderr=quiet) as process:
        try:
            until(lambda: not is_free(store.port), what="the object store")
            bucket = urllib.request.Request(f"{store.endpoint}/{store.bucket}", method="PUT")
            urllib.request.urlopen(bucket).close()
            yield store
        finally:
            process.kill()


def s3_jars() -> list[Path]:
    """Hadoop's client of S3, of the version that PySpark's Hadoop has."""
    of_spark = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    [version] = [each.stem.rpartition("-")[2] for each in of_spark]
    return fetched_jars(
        f"hadoop-aws-{version}", [f"org.apache.hadoop:hadoop-aws:{version}"], label="Hadoop's S3 client"
    )


def _fetch(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, _PACKAGE]
    run_fetch(command, label="moto", into=folder)
