"""The chart's Dask scheduler and workers: who they are, who reaches them, and that they are off by default."""

from typing import Any

import pytest

from shipped_manifests import CHART, Object, helm_template, run_helm

IMAGE = "r.io/podscaler-simulation:0.1.0"


def dask(**values: Any) -> list[Object]:
    """What the chart adds for Dask."""
    objects = helm_template(values={"dask": {"enabled": True, "image": IMAGE, **values}})
    return [each for each in objects if each["metadata"]["name"].startswith("podscaler-dask")]


def deployments(**values: Any) -> dict[str, Object]:
    """The Deployments by their role."""
    found = [each for each in dask(**values) if each["kind"] == "Deployment"]
    return {each["metadata"]["name"].removeprefix("podscaler-dask-"): each for each in found}


def pod(deployment: Object) -> Object:
    """The spec of its pods."""
    spec: Object = deployment["spec"]["template"]["spec"]
    return spec


def test_nothing_by_default() -> None:
    """The value is off."""
    assert not [each for each in helm_template() if "dask" in each["metadata"]["name"]]


def test_the_objects() -> None:
    """A scheduler behind a Service, workers, and the policy of who reaches them."""
    assert sorted((each["kind"], each["metadata"]["name"]) for each in dask()) == [
        ("Deployment", "podscaler-dask-scheduler"),
        ("Deployment", "podscaler-dask-worker"),
        ("NetworkPolicy", "podscaler-dask"),
        ("Service", "podscaler-dask"),
    ]


def test_workers_connect_to_the_service() -> None:
    """One scheduler, as many workers as stated, in one thread each."""
    found = deployments(workers=5, memoryLimit="2GiB")
    assert {role: each["spec"]["replicas"] for role, each in found.items()} == {"scheduler": 1, "worker": 5}
    (worker,) = pod(found["worker"])["containers"]
    assert worker["image"] == IMAGE
    assert worker["command"] == ["python3", "-m", "distributed.cli.dask_worker"]
    assert worker["args"][:3] == ["tcp://podscaler-dask:8786", "--nthreads=1", "--memory-limit=2GiB"]


@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_least_rights(role: str) -> None:
    """No token, no root, nothing written but a temporary folder, and no page that is served."""
    spec = pod(deployments()[role])
    (container,) = spec["containers"]
    assert (spec["automountServiceAccountToken"], spec["securityContext"]["runAsNonRoot"]) == (False, True)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/tmp"]
    assert "--no-dashboard" in container["args"]
    assert {each["value"] for each in container["env"] if "ROUTES" in each["name"]} == {"[]"}


def test_clients_are_named() -> None:
    """Others than pods with the labels reach no port; the scheduler's port is all that clients reach."""
    (policy,) = [each for each in dask(clientLabels={"team": "a"}) if each["kind"] == "NetworkPolicy"]
    among_themselves, clients = policy["spec"]["ingress"]
    own = {"app.kubernetes.io/instance": "podscaler", "app.kubernetes.io/name": "podscaler-dask"}
    assert among_themselves == {"from": [{"podSelector": {"matchLabels": own}}]}
    assert clients["ports"] == [{"port": 8786}]
    (client,) = clients["from"]
    assert "team" in client["podSelector"]["matchLabels"]


def test_certificates() -> None:
    """Both sides show one, and the address says so."""
    (worker,) = pod(deployments(tlsSecret="dask-tls")["worker"])["containers"]
    assert worker["args"][0] == "tls://podscaler-dask:8786"
    assert [each.partition("=")[0] for each in worker["args"] if "tls-" in each] == [
        "--tls-ca-file",
        "--tls-cert",
        "--tls-key",
    ]


def test_recordings_are_read_from_a_claim() -> None:
    """By workers, which do not write there."""
    found = deployments(existingClaim="recordings", mountPath="/out")
    mounts = {role: pod(each)["containers"][0]["volumeMounts"] for role, each in found.items()}
    assert {"name": "fleet", "mountPath": "/out", "readOnly": True} in mounts["worker"]
    assert [each["name"] for each in mounts["scheduler"]] == ["temporary"]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param("dask.image=", "dask.enabled needs dask.image", id="no image"),
        pytest.param("dask.memoryLimit=much", "memoryLimit", id="no amount"),
        pytest.param("dask.workers=-1", "workers", id="fewer than none"),
    ],
)
def test_values_that_mean_nothing(values: str, sentence: str) -> None:
    """Helm says which."""
    arguments = ["--set=dask.enabled=true", f"--set=dask.image={IMAGE}", f"--set={values}"]
    done = run_helm("template", "podscaler", str(CHART), *arguments)
    assert (done.returncode, sentence in done.stderr) == (1, True), done.stderr
