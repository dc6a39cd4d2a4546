"""Quotas, certificates and stored kinds on a running `up`, with kubectl."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from up_process import Up, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("kubectl_present")]

Object = dict[str, Any]
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
VOLUME = """\
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /data}}
"""


@pytest.fixture
def plane(tmp_path: Path) -> Any:
    """An `up` without its autoscaler."""
    instance = Up(tmp_path / "data", flags=("--without-autoscaler",)).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def deployment(replicas: int) -> str:
    """A Deployment of simulated pods, as JSON."""
    container = {"name": "web", "image": "web", "resources": {"requests": {"cpu": "100m"}}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"runtimeClassName": "simulated", "containers": [container]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})


def used(up: Up) -> Object:
    """What is used of the quota."""
    found: Object = up.get("/api/v1/namespaces/default/resourcequotas/q").get("status", {}).get("used", {})
    return found


def test_a_workload_stops_at_its_quota_and_goes_on_when_it_is_raised(plane: Up) -> None:
    """The status counts pods, the ReplicaSet has an event with the reason, and deletions free what they used."""
    plane.kubectl("create", "quota", "q", "--hard=pods=2,requests.cpu=1,count/deployments.apps=1")
    eventually(lambda: used(plane), until=lambda found: found.get("pods") == "0")
    plane.kubectl("apply", "-f", "-", stdin=deployment(3))
    failed = eventually(lambda: [each for each in plane.events() if each[1] == "FailedCreate"])
    assert failed[0][2].endswith("is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2")
    assert used(plane) == {"count/deployments.apps": "1", "pods": "2", "requests.cpu": "200m"}
    assert "requests.cpu            200m  1" in plane.kubectl("describe", "quota", "q")
    plane.kubectl("scale", "deployment", "web", "--replicas=1")
    eventually(lambda: used(plane), until=lambda found: found["requests.cpu"] == "100m")
    plane.kubectl("delete", "deployment", "web")
    eventually(lambda: used(plane), until=lambda found: set(found.values()) == {"0"})


def test_a_user_gets_a_certificate_that_the_server_accepts(plane: Up, tmp_path: Path) -> None:
    """`kubectl certificate approve` leads to a certificate, with which kubectl is that user."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "devs"), x509.NameAttribute(NameOID.COMMON_NAME, "ann")]
    )
    pem = x509.CertificateSigningRequestBuilder(subject).sign(key, hashes.SHA256())
    encoded = base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": encoded, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    plane.create(REQUESTS, {"metadata": {"name": "ann"}, "spec": spec})
    plane.kubectl("certificate", "approve", "ann")
    certificate = eventually(lambda: plane.get(f"{REQUESTS}/ann")["status"].get("certificate"))
    assert plane.kubectl("get", "csr", "ann", "--no-headers").split()[-1] == "Approved,Issued"
    config = yaml.safe_load(plane.kubeconfig.read_text())
    encryption = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    config["users"][0]["user"] = {
        "client-certificate-data": certificate,
        "client-key-data": base64.b64encode(private).decode(),
    }
    path = tmp_path / "ann.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    shown = json.loads(plane.kubectl("--kubeconfig", str(path), "auth", "whoami", "-o", "json"))
    assert shown["status"]["userInfo"]["username"] == "ann"
    assert shown["status"]["userInfo"]["groups"] == ["devs", "system:authenticated"]


def test_a_volume_is_stored_and_goes_when_it_is_deleted(plane: Up) -> None:
    """kubectl creates, lists and deletes it; the finalizer does not keep a volume that is not bound."""
    plane.kubectl("create", "-f", "-", stdin=VOLUME)
    assert plane.kubectl("get", "pv", "--no-headers").split()[:5] == ["disk", "1Gi", "RWO", "Retain", "Pending"]
    plane.kubectl("delete", "pv", "disk")
    assert plane.find("/api/v1/persistentvolumes/disk") is None
