"""Serves `/healthz`, `/livez` and `/readyz`, and each of their checks by name (`/readyz/etcd`).

`non_resource_handlers` calls `respond`. The checks have kube-apiserver's names and order, as clients look for them by
name. Those of `ServerParts.checks` can fail. The others succeed: what they stand for precedes the first response of
this server (bootstrap roles, system namespaces), or it has nothing that could fail (informers of the same process,
priority and fairness).

Source: kube-apiserver v1.37 (tests/conformance/recorded/odd-requests.jsonl).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from podscaler.controlplane.apiserver.http import responses
from podscaler.controlplane.apiserver.http.query_options import Query
from podscaler.controlplane.apiserver.http.responses import EncodedResponse

_FIRST_HOOKS = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
)
_LAST_HOOKS = ("apiservice-openapi-controller", "apiservice-openapiv3-controller")
"""The post-start hooks before and behind the check `autoregister-completion`."""
_NO_SNIFF = {"X-Content-Type-Options": "nosniff"}

Checks = Mapping[str, Callable[[], str]]
"""Checks by name; each returns the reason of its failure, or an empty text."""


def respond(path: str, query: Query, checks: Checks) -> EncodedResponse:
    """The response of `/healthz`, `/livez`, `/readyz`, or of one check of theirs (`/readyz/ping`; 404 if unknown).

    Args:
        path: the request's path.
        query: `verbose` lists every check, `exclude` leaves some out.
        checks: the checks that may fail, `etcd` (the storage) among them.
    """
    endpoint, _, check_name = path.strip("/").partition("/")
    checks_by_name = {  # `etcd-readiness` is the check `etcd`, too
        name: checks.get(name.removesuffix("-readiness"), _succeed) for name in _check_names(endpoint, checks)
    }
    if check_name:
        if check_name not in checks_by_name:
            return responses.NOT_FOUND_PAGE
        run_check = checks_by_name[check_name]
        return _single_response(run_check())
    excluded = set(query.texts("exclude"))
    reason_by_name = {name: "" if name in excluded else run_check() for name, run_check in checks_by_name.items()}
    has_failed = any(reason_by_name.values())
    if not (has_failed or "verbose" in query):
        return replace(responses.text("ok"), headers=_NO_SNIFF)
    lines = [
        _line(name, failure_reason, is_excluded=name in excluded) for name, failure_reason in reason_by_name.items()
    ]
    if unknown_names := sorted(excluded - checks_by_name.keys()):
        quoted_names = ", ".join(f'"{name}"' for name in unknown_names)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted_names}")
    lines.append(f"{endpoint} check {'failed' if has_failed else 'passed'}\n")
    return replace(responses.text("\n".join(lines), 500 if has_failed else 200), headers=_NO_SNIFF)


def _check_names(endpoint: str, checks: Checks) -> Iterator[str]:
    """The names of an endpoint's checks (`readyz`), in their order. A new check that cannot fail: add its name here."""
    yield from ("ping", "log")
    if endpoint != "readyz":
        yield "loopback-serving-certificate"
    yield from checks
    if endpoint == "readyz":
        yield from ("etcd-readiness", "informer-sync")
    yield from (f"poststarthook/{hook}" for hook in _FIRST_HOOKS)
    yield "autoregister-completion"
    yield from (f"poststarthook/{hook}" for hook in _LAST_HOOKS)
    if endpoint == "readyz":
        yield "shutdown"


def _succeed() -> str:
    """The check of what cannot fail here."""
    return ""


def _single_response(failure_reason: str) -> EncodedResponse:
    """The response of one check, which failed unless the reason is empty."""
    if not failure_reason:
        return responses.text("ok")  # as in kube-apiserver, without `_NO_SNIFF`
    return replace(responses.text(f"internal server error: {failure_reason}\n", 500), headers=_NO_SNIFF)


def _line(name: str, failure_reason: str, *, is_excluded: bool) -> str:
    """The line of one check in the list of all; the check failed unless the reason is empty."""
    if is_excluded:
        return f"[+]{name} excluded: ok"
    return f"[-]{name} failed: {failure_reason}" if failure_reason else f"[+]{name} ok"
