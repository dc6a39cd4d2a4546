"""`agnhost external-metrics`: an HTTPS server of the external metrics API, whose values requests set.

`programs.agnhost` calls `main`. The values of `queue_messages_ready` and `http_requests_total` exist at the start. The
certificate is signed by its own key, which is made at the start and never written outside a temporary folder.

    GET /create/METRIC?value=N&fail=BOOL&labels=a=b,c=d
    GET /set/METRIC?value=N&labels=...
    GET /fail/METRIC?fail=BOOL&labels=...
    GET /apis/external.metrics.k8s.io/v1beta1/namespaces/NS/METRIC?labelSelector=...

Source: test/images/agnhost/external-metrics of Kubernetes v1.37 (paths, parameters, messages).
Differs: there are METRICS_MAX metrics at most; the flags service-name and service-namespace have no effect, as the
certificate is for `localhost`. The metrics are the same in every namespace, as upstream.
"""

import json
import site
import ssl
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser, parse_int
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, WebResponse, error_response, serve

METRICS_MAX: Final = 1000
GROUP: Final = "external.metrics.k8s.io"
GROUP_VERSION: Final = f"{GROUP}/v1beta1"
CERTIFICATE_LIFE: Final = timedelta(days=365)
_API_GROUP: Final = {
    "kind": "APIGroup",
    "apiVersion": "v1",
    "name": GROUP,
    "versions": [{"groupVersion": GROUP_VERSION, "version": "v1beta1"}],
    "preferredVersion": {"groupVersion": GROUP_VERSION, "version": "v1beta1"},
}
_RESOURCES: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": GROUP_VERSION,
    "resources": [{"name": "*", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}],
}


@dataclass(slots=True)
class ServedMetric:
    """A metric with its value; while `is_failing`, requests for it get an error."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    value: int = 0
    is_failing: bool = False


def parse_labels(labels: str) -> dict[str, str]:
    """The labels in `a=b,c=d`; parts without `=` are left out."""
    pairs = (label.partition("=") for label in labels.split(","))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


class ExternalMetricsServer:
    """Responds to the requests."""

    def __init__(self) -> None:
        self._metrics = [
            ServedMetric("queue_messages_ready", value=100),
            ServedMetric("http_requests_total", value=500),
        ]
        self._lock = threading.Lock()

    def respond(self, request: WebRequest) -> WebResponse:
        """The response to a request, which may set a value. A new path: a case here."""
        with self._lock:
            match request.path.strip("/").split("/"):
                case ["healthz"] | ["readyz"]:
                    return WebResponse("ok")
                case ["apis", group, *path_below_group] if group == GROUP:
                    return self._respond_with_api(path_below_group, request.form)
                case ["create" | "set" | "fail" as action]:
                    return self._change_metric(action, "", request.form)
                case ["create" | "set" | "fail" as action, metric_name, *_]:
                    return self._change_metric(action, metric_name, request.form)
            return error_response("404 page not found", 404)

    def _respond_with_api(self, path: list[str], form: Mapping[str, str]) -> WebResponse:
        """The response of the metrics API; `path` are the parts of the path below its group."""
        match path:
            case []:
                return _json_response(_API_GROUP)
            case ["v1beta1"]:
                return _json_response(_RESOURCES)
            case ["v1beta1", "namespaces", _, name, *_]:
                return self._metric_values(name, parse_labels(form.get("labelSelector", "")))
        return error_response("404 page not found", 404)

    def _metric_values(self, name: str, labels: Mapping[str, str]) -> WebResponse:
        """The values of the metrics with that name, and with at least these labels."""
        matching = [
            metric for metric in self._metrics if metric.name == name and labels.items() <= metric.labels.items()
        ]
        if not matching:
            return error_response(
                f"no metric name called {name}" + (f" with labels {_go_map(labels)}" if labels else ""), 404
            )
        if any(metric.is_failing for metric in matching):
            return error_response(f"metric {name} is configured to fail", 500)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {"metricName": name, "metricLabels": metric.labels or None, "timestamp": now, "value": str(metric.value)}
            for metric in matching
        ]
        return _json_response(
            {"kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}
        )

    def _change_metric(self, action: str, name: str, form: Mapping[str, str]) -> WebResponse:
        """Create a metric, set its value, or let it fail.

        Args:
            action: `create`, `set` or `fail`.
            name: of the metric, empty where the path has none.
        """
        if not name:
            return error_response("metric name required", 400)
        labels = parse_labels(form.get("labels", ""))
        served = next((metric for metric in self._metrics if metric.name == name and metric.labels == labels), None)
        if action == "fail":
            return self._set_failing(served, name, form.get("fail", ""))
        if not form.get("value"):
            return error_response("value param required", 400)
        value = parse_int(form["value"])
        if value is None:
            return error_response("value param must be an integer", 400)
        if action == "create":
            return self._create_metric(ServedMetric(name, labels, value, form.get("fail") == "true"), served)
        if served is None:
            return error_response(f"metric {_metric_key(name, labels)} not found", 404)
        served.value = value
        return _json_response({"status": "success", "metric": name, "value": value})

    def _set_failing(self, served: ServedMetric | None, name: str, failing: str) -> WebResponse:
        """Let requests for a metric fail, or no longer.

        Args:
            served: None for an unknown metric.
            failing: the parameter `fail`, of which `true` and `false` are valid.
        """
        if failing not in ("true", "false"):
            return error_response("fail param should be true or false", 400)
        if served is None:
            return error_response(f"metric {name} not found", 404)
        served.is_failing = failing == "true"
        return _json_response({"status": "success", "metric": name, "labels": served.labels, "failing": failing})

    def _create_metric(self, metric: ServedMetric, former: ServedMetric | None) -> WebResponse:
        """Add a metric in place of `former`, the one with the same name and labels (None: there is none)."""
        if former is not None:
            self._metrics.remove(former)
        if len(self._metrics) >= METRICS_MAX:
            return error_response(f"there are {METRICS_MAX} metrics already", 507)
        self._metrics.append(metric)
        created = {"metric": metric.name, "labels": metric.labels, "value": metric.value, "failing": metric.is_failing}
        return _json_response({"status": "created", **created}, 201)


def _metric_key(name: str, labels: Mapping[str, str]) -> str:
    """A metric as messages name it: NAME:a=b,c=d."""
    return f"{name}:{','.join(f'{key}={value}' for key, value in labels.items())}" if labels else name


def _go_map(labels: Mapping[str, str]) -> str:
    """Labels as Go prints a map: map[a:b c:d]."""
    return f"map[{' '.join(f'{name}:{labels[name]}' for name in sorted(labels))}]"


def _json_response(body: Any, status: int = 200) -> WebResponse:
    return WebResponse(f"{json.dumps(body)}\n", status, {"Content-Type": "application/json"})


def self_signed_context() -> ssl.SSLContext:
    """A TLS context with a new key and a certificate for `localhost`; extends sys.path. Raises OSError."""
    site.main()  # the program is started without site-packages, which have cryptography
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + CERTIFICATE_LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(prefix="certificate-") as file:
        file.write(key.private_bytes(*formats) + certificate.public_bytes(serialization.Encoding.PEM))
        file.flush()
        context.load_cert_chain(Path(file.name))
    return context


def main(args: Sequence[str]) -> int:
    """Serve; returns the exit status. Raises OSError where no certificate can be made."""
    parser = ArgumentParser(prog="external-metrics")
    parser.add_flag("port", 6443)
    parser.add_flag("service-name", "external-metrics-server")
    parser.add_flag("service-namespace", "default")
    options = parser.parse_args(args)
    return serve(ExternalMetricsServer().respond, options.port, tls_context=self_signed_context())
