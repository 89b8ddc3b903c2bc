"""The Helm chart as Helm renders it: Kubernetes' schemas take it, and each program is one pod with the right probes.

CDC_HELM names a helm; without it one on PATH, or one that Go builds.
"""

import os
import shutil
import subprocess
import venv
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdc.service.http_endpoint import Endpoint
from tests.checks.alerts import ROOT, alerts
from tests.harness.outside import get

CHART = ROOT / "deploy/helm/cdc"
HELM = "helm.sh/helm/v3/cmd/helm@v3.16.4"
VALUES = """
programs:
  producer:
    command: [cdc-producer, /etc/cdc/producer.toml]
    profiles: {producer.toml: "mysql_resource_name = 'shop'\\n"}
    resources: {requests: {cpu: 200m, memory: 256Mi}}
    envFrom: [{secretRef: {name: passwords}}]
  consumer: {command: [cdc-consumer, /etc/cdc/consumer.toml], existingSecret: mine}
  audit: {command: [cdc-audit], image: {repository: cdc-spark}, storage: 10Gi, existingSecret: mine}
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true}
"""


@cache
def helm(folder: Path) -> str:
    if named := os.environ.get("CDC_HELM") or shutil.which("helm"):
        return named
    if not (go := shutil.which("go")):
        pytest.skip("there is no helm on PATH, and no Go to build one")
    subprocess.run([go, "install", HELM], env=dict(os.environ) | {"GOBIN": str(folder)}, check=True)
    return str(folder / "helm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("chart")
    (made / "values.yaml").write_text(VALUES, encoding="utf-8")
    return made


def rendered(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [helm(folder), "template", "shop", str(CHART), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def manifests(folder: Path) -> list[dict[str, Any]]:
    done = rendered(folder, "--values", str(folder / "values.yaml"))
    assert done.returncode == 0, done.stderr
    (folder / "rendered.yaml").write_text(done.stdout, encoding="utf-8")
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def of_kind(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def test_kubernetes_schemas_take_it(folder: Path, manifests: list[dict[str, Any]]) -> None:
    venv.create(folder / "venv", with_pip=True)
    subprocess.run([folder / "venv/bin/pip", "install", "--quiet", "kubernetes-validate"], check=True)
    tool = [folder / "venv/bin/kubernetes-validate", "--strict", folder / "rendered.yaml"]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    own = [each for each in manifests if each["apiVersion"] != "monitoring.coreos.com/v1"]
    assert said.count(" passed for resource ") == len(own) == 3 * 3 + 1, said
    # A schema that takes everything would prove nothing.
    (folder / "wrong.yaml").write_text((folder / "rendered.yaml").read_text().replace("replicas:", "replicaz:"))
    assert subprocess.run([*tool[:2], folder / "wrong.yaml"], capture_output=True, check=False).returncode != 0


def test_each_program_is_one_pod_that_is_restarted_only_if_it_does_not_work(manifests: list[dict[str, Any]]) -> None:
    sets = of_kind(manifests, "StatefulSet")
    assert set(sets) == {"shop-producer", "shop-consumer", "shop-audit"}
    endpoint = Endpoint.open("127.0.0.1", 0, metrics=list, checks=list, info={})
    try:
        for each in sets.values():
            pod = each["spec"]["template"]["spec"]
            [container] = pod["containers"]
            probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("liveness", "readiness")}
            assert probes == {"liveness": "/livez", "readiness": "/readyz"}
            assert all(get(endpoint.port, path)[0] != 404 for path in probes.values())
            assert each["spec"]["replicas"] == 1
            assert (pod["securityContext"]["runAsNonRoot"], container["securityContext"]["readOnlyRootFilesystem"]) == (
                True, True,
            )  # fmt: skip
    finally:
        endpoint.close()


def test_secrets_and_volumes_are_those_of_the_values(manifests: list[dict[str, Any]]) -> None:
    assert set(of_kind(manifests, "Secret")) == {"shop-producer"}
    sets = of_kind(manifests, "StatefulSet")
    secrets = {name: each["spec"]["template"]["spec"]["volumes"][0]["secret"] for name, each in sets.items()}
    assert {name: each["secretName"] for name, each in secrets.items()} == {
        "shop-producer": "shop-producer", "shop-consumer": "mine", "shop-audit": "mine",
    }  # fmt: skip
    for each in sets.values():
        spec = each["spec"]["template"]["spec"]
        there = {volume["name"] for volume in spec["volumes"]}
        there |= {claim["metadata"]["name"] for claim in each["spec"].get("volumeClaimTemplates", ())}
        assert {mount["name"] for mount in spec["containers"][0]["volumeMounts"]} == there


def test_what_is_monitored_is_found_by_its_labels_and_alerted_on(manifests: list[dict[str, Any]]) -> None:
    services, monitors = of_kind(manifests, "Service"), of_kind(manifests, "ServiceMonitor")
    pods = of_kind(manifests, "StatefulSet")
    for name, monitor in monitors.items():
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        assert [each for each, service in services.items() if wanted <= service["metadata"]["labels"].items()] == [name]
        assert services[name]["metadata"]["labels"][monitor["spec"]["jobLabel"]].startswith("cdc")
        template = pods[name]["spec"]["template"]["metadata"]["labels"].items()
        assert services[name]["spec"]["selector"].items() <= template
        budget = of_kind(manifests, "PodDisruptionBudget")[name]["spec"]
        assert (budget["maxUnavailable"], budget["selector"]["matchLabels"].items() <= template) == (1, True)
    [rule] = of_kind(manifests, "PrometheusRule").values()
    assert {each["alert"] for group in rule["spec"]["groups"] for each in group["rules"]} == set(alerts())


def test_a_program_without_a_profile_is_refused(folder: Path) -> None:
    done = rendered(folder, "--set", "programs.x.command={cdc-producer}")
    assert done.returncode != 0
    assert "programs.x needs profiles, or an existingSecret" in done.stderr
