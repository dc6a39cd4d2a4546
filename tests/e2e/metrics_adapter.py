"""An adapter of custom metrics as a pod of its own: it delegates who comes in and what they may do to the API server.

    python metrics_adapter.py CERTIFICATE VALUE_FILE

It needs nothing but the standard library, the pod's service account and two roles: the one that lets it read whom to
believe, and `system:auth-delegator`. Every running pod of the label that it is asked for has the value in the file.
"""

import json
import os
import ssl
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta1"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ROOT = f"/apis/{GROUP}/{VERSION}"


def call(path: str, body: Any = None) -> Any:
    """What the API server answers to the pod's service account."""
    server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    request = urllib.request.Request(server + path, data, headers)
    with urllib.request.urlopen(request, context=context, timeout=20) as answer:
        return json.load(answer)


def is_allowed(user: str, groups: list[str], path: str) -> bool:
    """What the API server says to a SubjectAccessReview."""
    spec = {"user": user, "groups": groups, "nonResourceAttributes": {"path": path, "verb": "get"}}
    if path.startswith(f"{ROOT}/"):
        del spec["nonResourceAttributes"]
        spec["resourceAttributes"] = {"group": GROUP, "resource": "pods", "subresource": "hits", "verb": "get"}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(call("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"])


def values(namespace: str, selector: str, value: str) -> Any:
    """One value for each pod that the selector matches."""
    pods = call(f"/api/v1/namespaces/{namespace}/pods?labelSelector={quote(selector)}")["items"]
    items = [
        {
            "describedObject": {
                "kind": "Pod",
                "namespace": namespace,
                "name": pod["metadata"]["name"],
                "apiVersion": "v1",
            },
            "metricName": "hits",
            "timestamp": pod["metadata"]["creationTimestamp"],
            "value": value,
            "selector": None,
        }
        for pod in pods
    ]
    return {"kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}


class Handler(BaseHTTPRequestHandler):
    """Answers discovery and the one metric."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Authenticate by the front proxy's certificate, ask for authorization, answer."""
        certificate = self.connection.getpeercert() or {}
        names = {key: value for part in certificate.get("subject", ()) for key, value in part}
        if names.get("commonName") != "front-proxy-client":
            return self.send(401, {"kind": "Status", "code": 401})
        url = urlsplit(self.path)
        path = unquote(url.path)
        user, groups = self.headers.get("X-Remote-User", ""), self.headers.get_all("X-Remote-Group") or []
        if "system:masters" not in groups and not is_allowed(user, groups, path):
            return self.send(403, {"kind": "Status", "code": 403, "message": f"{user} may not"})
        parts = path.split("/")
        if path == ROOT:
            resource = {"name": "pods/hits", "singularName": "", "namespaced": True, "kind": "MetricValueList"}
            resources = [{**resource, "verbs": ["get"]}]
            found = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
            return self.send(200, {**found, "resources": resources})
        if path.startswith(f"{ROOT}/namespaces/") and parts[-3:] == ["pods", "*", "hits"]:
            selector = parse_qs(url.query).get("labelSelector", [""])[0]
            return self.send(200, values(parts[5], selector, Path(sys.argv[2]).read_text()))
        return self.send(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

    def send(self, status: int, document: Any) -> None:
        """One answer."""
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until killed, on the pod's own address."""
    trust = call("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")["data"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1])
    context.load_verify_locations(cadata=trust["requestheader-client-ca-file"])
    context.verify_mode = ssl.CERT_OPTIONAL
    server = ThreadingHTTPServer((os.environ["POD_IP"], 6443), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
