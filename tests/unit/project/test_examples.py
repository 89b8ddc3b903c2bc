"""The examples: the commands of the Airflow DAG are such as the programs take."""

import ast
import shlex
from pathlib import Path

from cdc.lake.options import parse_options as lake_options
from cdc.spark.job.options import parse_options as audit_options

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_commands_of_the_dag() -> None:
    """Without Airflow, which would bring some hundred packages: a line of the file is a command."""
    tree = ast.parse((EXAMPLES / "airflow_nightly.py").read_text(encoding="utf-8"))
    commands = {
        node.targets[0].id: shlex.split(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }  # fmt: skip
    audit, lake = commands["AUDIT"], commands["LAKE"]
    assert (audit[0], lake[0]) == ("cdc-audit", "cdc-lake")
    audited, kept = audit_options("cdc-audit", audit[1:]), lake_options(lake[1:])
    assert audited.leader == kept.profile
    assert audited.state != kept.to
