"""Measures audits over Spark Connect, beside audits of the same topics in a session with a JVM.

    python bench/audit_over_connect.py --client PYTHON [--updates 150000] [--rows 50000] [--rounds 6]

``PYTHON`` has cdc and pyspark-client of the version of the PySpark that runs this. A leader with ``--rows`` and
``--updates`` single-row updates of them is replicated and captured. Then a server of Spark Connect and a session with a
JVM, both on local[2] with the same settings, audit it in turns. The figures are seconds of each round: those of the
CPU, of the JVM with all threads, and of the client of Spark Connect.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pyspark
from audit import Servers, session, updated
from consumer import PLAIN, Shape, execute, fill, updates
from jvm import Jvm
from measure import process_cpu_seconds

from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.server.process import free_port, wait_until
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.job.session import CODE_CACHE, NO_REFERENCES
from cdc.spark.verdict import audit

CLIENT = """
import sys
from pyspark.sql import SparkSession
from cdc.spark import audit
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for _ in sys.stdin:
    print(audit(spark, *sys.argv[2:]), flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", type=Path, required=True, help="a Python with cdc and pyspark-client")
    parser.add_argument("--updates", type=int, default=150_000, help="of single rows (default %(default)s)")
    parser.add_argument("--rows", type=int, default=50_000, help="of the table (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=6, help="(default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        measure(Path(folder), options)
    return 0


def measure(folder: Path, options: argparse.Namespace) -> None:
    servers = Servers(folder)
    fill(servers.leader, Shape("", PLAIN, options.rows, updates, 0))
    execute(servers.leader, updated(options.updates, options.rows, random.Random(1)))
    servers.replicate()
    servers.capture()
    profiles = [servers.files[side] for side in (LEADER, FOLLOWER)]
    spark = session("2g")
    jvm = Jvm(spark)
    print("round  JVM wall  CPU  Connect wall  server CPU  client CPU  ratio of CPU")
    with connect_server(folder) as (address, server):
        command = [options.client, "-c", CLIENT, address, *profiles]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None and client.stdout is not None
            for number in range(1, options.rounds + 1):
                cpu, begun = jvm.cpu_seconds(), time.monotonic()
                assert str(audit(spark, *profiles)) == "no drift"
                wall, cpu = time.monotonic() - begun, jvm.cpu_seconds() - cpu
                before, begun = [process_cpu_seconds(pid) for pid in (server, client.pid)], time.monotonic()
                client.stdin.write("once more\n")
                client.stdin.flush()
                assert client.stdout.readline() == "no drift\n"
                over, theirs = time.monotonic() - begun, [process_cpu_seconds(pid) for pid in (server, client.pid)]
                there, here = (after - then for after, then in zip(theirs, before, strict=True))
                ratio = (there + here) / cpu
                print(f"{number:5}{wall:10.1f}{cpu:5.1f}{over:14.1f}{there:12.1f}{here:12.1f}{ratio:14.2f}", flush=True)
            client.stdin.close()
    spark.stop()
    servers.kill()


@contextmanager
def connect_server(folder: Path) -> Iterator[tuple[str, int]]:
    """The address and the process id of a server of Spark Connect, which runs in the block."""
    home, port, log = Path(pyspark.__file__).parent, free_port(), folder / "connect.log"
    jars = ",".join(map(str, spark_connector_jars(version("pyspark"))))
    settings = dict([CODE_CACHE, NO_REFERENCES]) | {
        "spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false", "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC", "spark.sql.warehouse.dir": folder / "warehouse",
    }  # fmt: skip
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    named = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--jars", jars]
    command = [home / "bin/spark-submit", "--master", "local[2]", *named, *given, "spark-internal"]
    with log.open("w") as written:
        server = subprocess.Popen(command, stderr=written, cwd=folder, env=os.environ | {"SPARK_HOME": str(home)})
    try:
        assert wait_until(lambda: "Spark Connect server started" in log.read_text(), seconds=300)
        yield f"sc://localhost:{port}", server.pid
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
