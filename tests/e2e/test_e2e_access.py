"""Access to a running `up` as its users meet it: kubectl, tokens, certificates, and a pod that calls the API."""

import base64
import http.client
import json
import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from up_process import KUBECTL, Up, eventually

import prerequisites
from patience import COMMAND_WITHIN_S, WITHIN_S

pytestmark = pytest.mark.usefixtures("kubectl_present")


def kubectl(up: Up, *arguments: str, config: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One call of kubectl, as the admin or with another kubeconfig."""
    command = [str(KUBECTL), "--kubeconfig", str(config or up.data_dir / "kubeconfig"), *arguments]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(up.data_dir.parent)}
    return subprocess.run(
        command, input=stdin, text=True, capture_output=True, timeout=COMMAND_WITHIN_S, env=environment, check=False
    )


def said(up: Up, *arguments: str, config: Path | None = None) -> str:
    """What kubectl says, on whichever of its two outputs."""
    done = kubectl(up, *arguments, config=config)
    return (done.stdout + done.stderr).strip()


def config_with(up: Up, folder: Path, user: dict[str, Any]) -> Path:
    """The admin's kubeconfig with another user."""
    document = yaml.safe_load((up.data_dir / "kubeconfig").read_text())
    document["users"][0]["user"] = user
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


def test_roles_by_kubectl(up: Up) -> None:
    """A role and its binding, created by kubectl, give what they say and no more."""
    said(up, "create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps/scale")
    said(up, "create", "rolebinding", "readers", "--role=reader", "--user=ann", "--serviceaccount=default:bot")
    as_ann = ("-n", "default", "--as=ann")
    answers = [
        said(up, "auth", "can-i", *question, *as_ann)
        for question in (
            ("list", "pods"),
            ("get", "deployments.apps", "--subresource=scale"),
            ("get", "deployments.apps"),
            ("delete", "pods"),
        )
    ]
    assert answers == ["yes", "yes", "no", "no"]
    assert said(up, "delete", "pod", "x", *as_ann) == (
        'Error from server (Forbidden): pods "x" is forbidden: User "ann" cannot delete resource "pods" '
        'in API group "" in the namespace "default"'
    )
    listed = said(up, "auth", "can-i", "--list", *as_ann)
    assert "deployments.apps/scale" in listed
    assert "selfsubjectaccessreviews.authorization.k8s.io" in listed


def test_a_token_by_kubectl(up: Up, tmp_path: Path) -> None:
    """`kubectl create token` makes a token that is the service account, until the account is deleted."""
    said(up, "create", "serviceaccount", "courier")
    config = config_with(up, tmp_path, {"token": said(up, "create", "token", "courier", "--duration=20m")})
    whoami = said(up, "auth", "whoami", "-o", "json", config=config)
    assert json.loads(whoami)["status"]["userInfo"]["username"] == "system:serviceaccount:default:courier"
    said(up, "delete", "serviceaccount", "courier")
    assert "You must be logged in to the server" in said(up, "get", "pods", config=config)


def test_a_certificate(up: Up, tmp_path: Path) -> None:
    """A certificate of the cluster's authority names a user and groups; one of another authority gets nowhere."""
    said(up, "create", "clusterrolebinding", "devs-view", "--clusterrole=view", "--group=devs")
    authority = (up.data_dir / "certificates" / "ca.pem").read_bytes()
    config = config_with(up, tmp_path, certificate(authority, "carol", "devs"))
    whoami = json.loads(said(up, "auth", "whoami", "-o", "json", config=config))["status"]["userInfo"]
    assert (whoami["username"], whoami["groups"]) == ("carol", ["devs", "system:authenticated"])
    assert said(up, "get", "pods", "-n", "kube-public", config=config) == "No resources found in kube-public namespace."
    assert "forbidden" in said(up, "get", "secrets", config=config)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _status_with(up, tmp_path, certificate(own_authority(), "carol", "devs"))


def test_reconcile(up: Up, tmp_path: Path) -> None:
    """`kubectl auth reconcile` adds what a role lacks."""
    said(up, "create", "clusterrole", "grows", "--verb=get", "--resource=pods")
    wanted = tmp_path / "role.yaml"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "grows"}}
    wanted.write_text(json.dumps(body | {"rules": rules}))
    assert "clusterrole.rbac.authorization.k8s.io/grows reconciled" in said(up, "auth", "reconcile", "-f", str(wanted))
    said(up, "create", "clusterrolebinding", "grows", "--clusterrole=grows", "--user=gil")
    assert said(up, "auth", "can-i", "list", "pods", "--as=gil") == "yes"


ASKS = """\
import json, os, ssl, urllib.request, urllib.error
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
server = "https://" + os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
context = ssl.create_default_context(cafile=folder + "ca.crt")
namespace = open(folder + "namespace").read()
for plural in ("pods", "secrets"):
    request = urllib.request.Request(f"{server}/api/v1/namespaces/{namespace}/{plural}")
    request.add_header("Authorization", "Bearer " + open(folder + "token").read())
    try:
        print(plural, urllib.request.urlopen(request, context=context).status, flush=True)
    except urllib.error.HTTPError as error:
        print(plural, error.code, json.load(error)["message"], flush=True)
"""


def test_a_pod_calls_the_api(up: Up) -> None:
    """A pod finds the API server and a token, and may do what its service account may."""
    conditions = {each["type"]: each["status"] for each in up.node()["status"]["conditions"]}
    if conditions.get("PrivateMounts", "True") != "True":
        prerequisites.PRIVATE_MOUNTS.skip()
    said(up, "create", "serviceaccount", "inside")
    said(up, "create", "role", "inside", "--verb=list", "--resource=pods")
    said(up, "create", "rolebinding", "inside", "--role=inside", "--serviceaccount=default:inside")
    container = {"name": "c", "image": "none", "command": ["python3", "-c", ASKS]}
    spec = {"serviceAccountName": "inside", "restartPolicy": "Never", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "inside"}, "spec": spec}
    assert kubectl(up, "apply", "-f", "-", stdin=json.dumps(pod)).returncode == 0
    eventually(lambda: said(up, "get", "pod", "inside", "-o", "jsonpath={.status.phase}"), until="Succeeded".__eq__)
    assert said(up, "logs", "inside").splitlines() == [
        "pods 200",
        'secrets 403 secrets is forbidden: User "system:serviceaccount:default:inside" cannot list resource '
        '"secrets" in API group "" in the namespace "default"',
    ]


@prerequisites.CURL.mark(is_there=shutil.which("curl") is not None)
def test_health_for_everyone_and_the_audit_log(fresh_up: Up, tmp_path: Path) -> None:
    """By flags, probes need no credentials, and the audit log says who did what."""
    log = tmp_path / "audit.log"
    fresh_up.flags = (*fresh_up.flags, "--anonymous-health", "--audit-log", str(log))
    fresh_up.start()
    server = yaml.safe_load((fresh_up.data_dir / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    curl = ("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}")
    codes = [
        subprocess.run(
            [*curl, server + path], capture_output=True, text=True, check=False, timeout=COMMAND_WITHIN_S
        ).stdout
        for path in ("/livez", "/readyz", "/healthz", "/version", "/api/v1/namespaces")
    ]
    said(fresh_up, "get", "configmaps", "-n", "kube-public", "--as=eve")
    fresh_up.stop()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    refused = [event for event in events if event.get("objectRef", {}).get("resource") == "configmaps"]
    assert codes == ["200", "200", "200", "401", "401"]
    assert [(_users(event), event["responseStatus"]["code"]) for event in refused if _users(event)] == [
        (("admin", "eve"), 403)
    ]


def _users(event: Any) -> tuple[str, str] | None:
    """Who asked, and for whom; None where somebody asked for themselves."""
    acting = event.get("impersonatedUser")
    return (event["user"]["username"], acting["username"]) if acting else None


def _status_with(up: Up, folder: Path, user: dict[str, str]) -> int:
    """The status of a request with a certificate. Raises OSError where the server does not take it."""
    cluster = yaml.safe_load((up.data_dir / "kubeconfig").read_text())["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    path = folder / "client.pem"
    path.write_bytes(b"".join(base64.b64decode(part) for part in user.values()))
    context.load_cert_chain(path)
    host, _, port = cluster["server"].removeprefix("https://").partition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=WITHIN_S)
    try:
        connection.request("GET", "/version")
        return connection.getresponse().status
    finally:
        connection.close()


def certificate(authority: bytes, name: str, group: str) -> dict[str, str]:
    """A kubeconfig user with a new key and a certificate that `authority` signed."""
    issuer = x509.load_pem_x509_certificate(authority)
    signer = serialization.load_pem_private_key(authority, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name), x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)]
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer.subject, x509.Name(subject), key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    signed = builder.sign(signer, hashes.SHA256())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        "client-certificate-data": base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode(),
        "client-key-data": base64.b64encode(pem).decode(),
    }


def own_authority() -> bytes:
    """Key and certificate of an authority that the cluster does not know."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stranger")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
