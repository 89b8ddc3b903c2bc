"""The text of Spark's errors."""

import pytest
from py4j.protocol import Py4JError

from cdc.spark.job.output import raised_message, root_cause, was_cancelled

RAISED = "[USER_RAISED_EXCEPTION] {} SQLSTATE: P0001"
TRACE = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted: Task 0 failed: {}
\tat org.apache.spark.Scheduler.abort(Scheduler.scala:1)
Caused by: org.apache.spark.SparkRuntimeException: {}
\tat org.apache.spark.Errors.raiseError(Errors.scala:1)
"""


@pytest.mark.parametrize("form", ["{0}", f"{TRACE.format('{0}', '{0}')}"])
@pytest.mark.parametrize("message", ["row 1: no such value", "the value is ' SQLSTATE: 45000'", "[a] b"])
def test_message_that_an_expression_raised(form: str, message: str) -> None:
    """A message may contain an SQLSTATE of its own."""
    assert raised_message(Exception(form.format(RAISED.format(message)))) == message


def test_message_without_an_sqlstate() -> None:
    assert raised_message(Exception("[USER_RAISED_EXCEPTION] a")) == "a"
    assert raised_message(Exception("[USER_RAISED_EXCEPTION] a\n\tat b")) == "a"


def test_other_errors_raise_no_message() -> None:
    assert raised_message(Exception("[DIVIDE_BY_ZERO] SQLSTATE: 22012")) is None


def test_root_cause_is_the_last_one() -> None:
    error = Py4JError(TRACE.format("first", "disk full"))
    assert root_cause(error) == "org.apache.spark.SparkRuntimeException: disk full"
    assert root_cause(Exception("\nno trace\nmore")) == "no trace"


def test_cancelled_jobs() -> None:
    assert was_cancelled(Exception("[SPARK_JOB_CANCELLED] Job 1 cancelled"))
    assert not was_cancelled(Exception("Job 1 failed"))
