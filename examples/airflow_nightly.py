"""An Airflow DAG: each night the audit of a follower and, where it has not drifted, the lake as of then.

Both commands go on from what they had the night before. Airflow's worker needs cdc with its extra ``spark`` and a
JDK, and the profiles and folders that the commands name. A task fails with the exit status of its command: of the
audit 1 is drift, 2 no verdict, and its log has the reason; the page of the report shows the rows.
"""

from datetime import datetime, timedelta

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator

AUDIT = """
cdc-audit --leader /etc/cdc/producer_profile.toml --follower /etc/cdc/follower_profile.toml
    --consumer /etc/cdc/consumer_profile.toml --state /var/lib/cdc/audit --max-age 3600 --report /var/lib/cdc/report
"""
LAKE = """
cdc-lake /etc/cdc/producer_profile.toml --to /var/lib/cdc/lake --format delta
"""


def one_line(command: str) -> str:
    """The command as a shell takes it."""
    return " ".join(command.split())


with DAG(
    "cdc_nightly",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a state and a lake are locked by the run that uses them
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10)},
):
    audit = BashOperator(task_id="audit", bash_command=one_line(AUDIT))
    lake = BashOperator(task_id="lake", bash_command=one_line(LAKE))
    audit >> lake
