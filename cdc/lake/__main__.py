"""The program cdc-lake. It can also be run with spark-submit:

    spark-submit --packages <Spark's Kafka connector>,<the format's package> cdc/lake/__main__.py PROFILE --to DIR

``cdc`` must be installed for the Python that runs it.
"""

import sys
from importlib import util

from cdc.errors import UserError
from cdc.lake.options import parse_options
from cdc.service.java import with_spark
from cdc.service.process import exit_status

__all__ = ["main"]


def main() -> int:
    """Runs the program; returns its exit status."""
    return exit_status(_run, program="cdc-lake")


def _run() -> int:
    parse_options(sys.argv[1:])  # parsed before the check for PySpark: --help and --version need no PySpark
    if util.find_spec("pyspark") is None:
        raise UserError("PySpark is not installed", code="CDC-LAKE-NO-PYSPARK", hint=with_spark())
    # This module is imported only after the check for PySpark, since importing it without PySpark fails.
    from cdc.lake.program import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
