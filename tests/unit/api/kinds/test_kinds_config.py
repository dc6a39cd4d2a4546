"""ConfigMaps, Secrets, Namespaces, Nodes, Leases and metrics."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog

_CONFIG_MAP = catalog.get("configmaps")
_SECRET = catalog.get("secrets")
_NAMESPACE = catalog.get("namespaces")
_NODE = catalog.get("nodes")
_NOW_NS = 1_767_225_600 * 10**9
_BAD_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _faults(key: str, new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(fault) for fault in catalog.get(key).strategy.validate(new, old)]


@pytest.mark.parametrize(
    ("new", "faults"),
    [
        pytest.param({"data": {"a.b_C-1": "x"}, "binaryData": {"b": "AAE="}}, [], id="fine"),
        pytest.param({"data": {"a b": ""}}, [f'data[a b]: Invalid value: "a b": {_BAD_KEY}'], id="key"),
        pytest.param({"data": {"..": ""}}, ["data[..]: Invalid value: \"..\": may not be '..'"], id="parent"),
        pytest.param({"data": {"..x": ""}}, ["data[..x]: Invalid value: \"..x\": may not start with '..'"], id="dots"),
        pytest.param(
            {"data": {"a": ""}, "binaryData": {"a": ""}},
            ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
            id="key twice",
        ),
        pytest.param({"data": {"a": "x" * 1024 * 1024}}, [], id="largest"),
        pytest.param(
            {"data": {"a": "x" * 1024 * 1024}, "binaryData": {"b": "AA=="}},
            [": Too long: may not be more than 1048576 bytes"],
            id="too large",
        ),
    ],
)
def test_config_maps(new: dict[str, Any], faults: list[str]) -> None:
    """Keys become file names, and all data together fits into a mebibyte."""
    assert _faults("configmaps", new) == faults


def test_immutable_config_maps_stay() -> None:
    """Neither the data nor the mark of an immutable config map can change."""
    old = {"data": {"a": "x"}, "immutable": True}
    text = "Forbidden: field is immutable when `immutable` is set"
    assert _faults("configmaps", {"data": {"a": "y"}}, old) == [f"immutable: {text}", f"data: {text}"]
    assert _faults("configmaps", dict(old), old) == []


def test_secrets_take_plain_text() -> None:
    """`stringData` becomes encoded data and wins over it; the type defaults to Opaque."""
    secret = {"data": {"a": "AA==", "b": "AA=="}, "stringData": {"a": "x"}}
    _SECRET.versions[0].default(secret)
    assert secret == {"data": {"a": "eA==", "b": "AA=="}, "type": "Opaque"}


@pytest.mark.parametrize(
    ("new", "old", "faults"),
    [
        pytest.param({"type": "Opaque", "data": {"a": "eA=="}}, None, [], id="fine"),
        pytest.param(
            {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, None, ["data[tls.key]: Required value"], id="tls"
        ),
        pytest.param(
            {"type": "kubernetes.io/basic-auth"},
            None,
            ["data[username]: Required value", "data[password]: Required value"],
            id="basic auth",
        ),
        pytest.param({"type": "a"}, {"type": "b"}, ['type: Invalid value: "a": field is immutable'], id="type stays"),
    ],
)
def test_secrets(new: dict[str, Any], old: Any, faults: list[str]) -> None:
    """A secret holds what its type demands, and keeps its type."""
    assert _faults("secrets", new, old) == faults


def test_namespaces_know_their_name_and_are_held() -> None:
    """A new namespace is active, carries its name as a label, and is held by a finalizer until it is empty."""
    namespace: dict[str, Any] = {"metadata": {"name": "n", "labels": {"a": "b"}}}
    strategy = _NAMESPACE.strategy
    strategy.prepare_create(namespace)
    assert namespace == {
        "metadata": {"name": "n", "labels": {"a": "b", "kubernetes.io/metadata.name": "n"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    update: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {}}
    strategy.prepare_update(update, namespace)
    freed: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {"finalizers": []}}
    strategy.prepare_subresource_update["finalize"](freed, namespace)
    assert [strategy.is_held(each) for each in (namespace, update, freed)] == [True, True, False]


def test_new_nodes_are_tainted() -> None:
    """Nothing is scheduled on a node before it is ready; a taint that is there is not doubled."""
    node: dict[str, Any] = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    _NODE.versions[0].default(node)
    _NODE.strategy.prepare_create(node)
    _NODE.strategy.prepare_create(node)
    assert [node["spec"]["taints"], node["status"]["allocatable"]] == [
        [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
        {"cpu": "4"},
    ]


@pytest.mark.parametrize(
    ("node", "cells"),
    [
        pytest.param({"metadata": {"name": "n"}}, ["Unknown", "<none>"], id="new"),
        pytest.param(
            {
                "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "False"}]},
            },
            ["NotReady,SchedulingDisabled", "a,b"],
            id="cordoned",
        ),
    ],
)
def test_node_table(node: dict[str, Any], cells: list[str]) -> None:
    """A node's condition, whether it takes pods, and its roles."""
    assert _NODE.printer.row(node, _NOW_NS)[1:3] == cells


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({"leaseDurationSeconds": 1, "leaseTransitions": 0}, [], id="fine"),
        pytest.param(
            {"leaseDurationSeconds": 0, "leaseTransitions": -1},
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
            id="numbers",
        ),
    ],
)
def test_leases(spec: dict[str, Any], faults: list[str]) -> None:
    """A lease lasts a while and was not taken over less than never."""
    assert _faults("leases.coordination.k8s.io", {"spec": spec}) == faults


def test_metrics_tables_add_containers_up() -> None:
    """A pod's usage is the sum over its containers, a node's its own."""
    usages = [{"cpu": "100m", "memory": "1Mi"}, {"cpu": "250m", "memory": "1Mi"}]
    pod = {"metadata": {"name": "p"}, "window": "15s", "containers": [{"usage": usage} for usage in usages]}
    node = {"metadata": {"name": "n"}, "window": "15s", "usage": usages[0]}
    rows = [
        catalog.get(f"{plural}.metrics.k8s.io").printer.row(obj, _NOW_NS)
        for plural, obj in (("pods", pod), ("nodes", node))
    ]
    assert rows == [["p", "350m", "2Mi", "15s"], ["n", "100m", "1Mi", "15s"]]
