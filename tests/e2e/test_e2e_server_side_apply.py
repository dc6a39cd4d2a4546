"""Handing spec.replicas over to an autoscaler with kubectl, as the documentation's chapter on migration has it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from up_process import KUBECTL, Up, eventually

from patience import COMMAND_WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("kubectl_present")]

Object = dict[str, Any]


def workload(name: str, kind: str = "Deployment", **spec: Any) -> Object:
    """A workload of pods without processes."""
    labels = {"app": name}
    pod = {"runtimeClassName": "simulated", "containers": [{"name": "app", "image": "any"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    own = {"serviceName": name} if kind == "StatefulSet" else {}
    whole = {"selector": {"matchLabels": labels}, "template": template, **own, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


def replicas(up: Up, name: str, plural: str = "deployments") -> int:
    """What the workload wants."""
    return int(up.get(f"/apis/apps/v1/namespaces/default/{plural}/{name}")["spec"]["replicas"])


def owners(up: Up, name: str) -> dict[str, str]:
    """Who owns the replicas: by manager, the operation and the subresource."""
    found = up.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")["metadata"]["managedFields"]
    return {
        entry["manager"]: f"{entry['operation']} {entry.get('subresource', '')}".strip()
        for entry in found
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    }


def apply(up: Up, obj: Object, *flags: str) -> subprocess.CompletedProcess[str]:
    """`kubectl apply` of an object."""
    return up.run_kubectl("apply", *flags, "-f", "-", stdin=json.dumps(obj))


def edit_last_applied(up: Up, name: str, folder: Path) -> None:
    """`kubectl apply edit-last-applied` with an editor that removes the line of replicas."""
    editor = folder / "editor"
    editor.write_text("#!/bin/sh\nsed -i '/^ *replicas:/d' \"$1\"\n")
    editor.chmod(0o700)
    env = {**os.environ, "KUBECONFIG": str(up.kubeconfig), "KUBE_EDITOR": str(editor), "HOME": str(folder)}
    command = [str(KUBECTL), "apply", "edit-last-applied", f"deployment/{name}"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=False)
    assert done.returncode == 0, done.stderr


def autoscaled(up: Up, name: str, minimum: int) -> None:
    """Let an autoscaler take the Deployment to its minimum."""
    up.kubectl("autoscale", "deployment", name, f"--min={minimum}", "--max=9", "--cpu-percent=50")
    eventually(lambda: replicas(up, name), until=lambda found: found == minimum)


def test_client_side_apply_resets_what_is_removed(up: Up) -> None:
    """Without further ado, a manifest that loses its replicas loses the live number too."""
    apply(up, workload("careless", replicas=2))
    up.kubectl("scale", "deployment", "careless", "--replicas=4")
    assert apply(up, workload("careless")).stdout == "deployment.apps/careless configured\n"
    assert replicas(up, "careless") == 1


def test_client_side_apply_with_edit_last_applied(up: Up, tmp_path: Path) -> None:
    """Who edits the last applied configuration first keeps the live number when applying without replicas."""
    apply(up, workload("edited", replicas=2))
    autoscaled(up, "edited", 4)
    edit_last_applied(up, "edited", tmp_path)
    assert replicas(up, "edited") == 4
    assert apply(up, workload("edited")).stdout == "deployment.apps/edited unchanged\n"
    assert replicas(up, "edited") == 4


def test_client_side_apply_with_set_last_applied(up: Up) -> None:
    """set-last-applied does the same from a file; for a StatefulSet, too."""
    apply(up, workload("stateful", "StatefulSet", replicas=1))
    up.kubectl("scale", "statefulset", "stateful", "--replicas=2")
    without = workload("stateful", "StatefulSet")
    up.kubectl("apply", "set-last-applied", "-f", "-", stdin=json.dumps(without))
    assert apply(up, without).returncode == 0
    assert replicas(up, "stateful", "statefulsets") == 2


def test_server_side_apply_hands_over(up: Up) -> None:
    """The autoscaler owns what it wrote; who stops applying replicas leaves them alone."""
    apply(up, workload("handed", replicas=1), "--server-side")
    assert owners(up, "handed") == {"kubectl": "Apply"}
    autoscaled(up, "handed", 3)
    assert owners(up, "handed") == {"podscaler-up": "Update scale"}
    done = apply(up, workload("handed"), "--server-side")
    assert done.stdout == "deployment.apps/handed serverside-applied\n"
    assert (replicas(up, "handed"), owners(up, "handed")) == (3, {"podscaler-up": "Update scale"})


def test_server_side_apply_conflicts_with_the_autoscaler(up: Up) -> None:
    """Who goes on applying replicas is told whose they are, and may force it."""
    apply(up, workload("forced", replicas=1), "--server-side")
    autoscaled(up, "forced", 3)
    done = apply(up, workload("forced", replicas=2), "--server-side")
    conflict = 'Apply failed with 1 conflict: conflict with "podscaler-up" with subresource "scale" using apps/v1'
    assert (done.returncode, conflict in done.stderr) == (1, True), done.stderr
    assert ".spec.replicas" in done.stderr
    forced = apply(up, workload("forced", replicas=2), "--server-side", "--force-conflicts")
    assert forced.stdout == "deployment.apps/forced serverside-applied\n"
    eventually(lambda: replicas(up, "forced"), until=lambda found: found == 3)


def test_replicas_that_nobody_else_owns_are_reset(up: Up) -> None:
    """Removed before anybody else wrote them, replicas go back to the default."""
    apply(up, workload("early", replicas=3), "--server-side")
    apply(up, workload("early"), "--server-side")
    assert (replicas(up, "early"), owners(up, "early")) == (1, {})


def test_from_client_side_to_server_side(up: Up) -> None:
    """kubectl's own older writes are no conflict for it; afterwards it owns them by applying."""
    apply(up, workload("moved", replicas=2))
    assert owners(up, "moved") == {"kubectl-client-side-apply": "Update"}
    done = apply(up, workload("moved", replicas=3), "--server-side")
    assert (done.returncode, done.stderr) == (0, "")
    assert (replicas(up, "moved"), owners(up, "moved")) == (3, {"kubectl": "Apply"})


def test_managers_are_shown_on_request(up: Up) -> None:
    """kubectl hides managedFields unless it is asked for them."""
    apply(up, workload("shown", replicas=1), "--server-side", "--field-manager=me")
    get = ("get", "deployment", "shown", "-o", "yaml")
    assert "managedFields" not in up.kubectl(*get)
    assert "manager: me" in up.kubectl(*get, "--show-managed-fields")
