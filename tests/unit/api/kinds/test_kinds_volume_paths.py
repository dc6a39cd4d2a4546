"""What is wrong with paths that pods name: of files in volumes, of mounts, of HTTP probes."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog

_POD = catalog.get("pods")
_V = "spec.volumes[0]"
_P = f"{_V}.projected"
_S = f"{_P}.sources[0]"
_M = "spec.containers[0].volumeMounts"
_G = "spec.containers[0].livenessProbe.httpGet"
_RELATIVE = "must be a relative path"
_NO_BACKSTEP = "must not contain '..'"
_RESERVED = "must not start with '..'"
_CONFLICT = "conflicting duplicate paths"
_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
)
_NAME = {"apiVersion": "v1", "fieldPath": "metadata.name"}


def _pod(spec: dict[str, Any]) -> dict[str, Any]:
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    _POD.versions[0].default(pod)
    return pod


def _faults(**spec: Any) -> list[str]:
    return [str(fault) for fault in _POD.strategy.validate(_pod(spec), None)]


def _volume(source: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def _projected(*sources: dict[str, Any]) -> list[str]:
    return _faults(**_volume({"projected": {"sources": list(sources)}}))


def _token(path: str) -> dict[str, Any]:
    return {"serviceAccountToken": {"path": path}}


def _keys(kind: str, *paths: str) -> dict[str, Any]:
    return {kind: {"name": "n", "items": [{"key": "k", "path": path} for path in paths]}}


def _downward(*paths: str) -> dict[str, Any]:
    return {"downwardAPI": {"items": [{"path": path, "fieldRef": _NAME} for path in paths]}}


def _bundle(path: str, **more: Any) -> dict[str, Any]:
    return {"clusterTrustBundle": {"name": "b", "path": path, **more}}


def _certificate(**paths: str) -> dict[str, Any]:
    return {"podCertificate": {"signerName": "a.b/c", "keyType": "ED25519", **paths}}


def _invalid(field: str, value: str, text: str) -> str:
    return f'{field}: Invalid value: "{value}": {text}'


_WRONG = {
    "absolute": ("/etc/x", [_RELATIVE]),
    "leading out": ("../x", [_NO_BACKSTEP]),
    "leading out in the middle": ("a/../x", [_NO_BACKSTEP]),
    "absolute and leading out": ("/a/..", [_RELATIVE, _NO_BACKSTEP]),
    "parent alone": ("..", [_NO_BACKSTEP, _RESERVED]),
    "reserved": ("..data", [_RESERVED]),
}
_PLACES = {
    "token": (_token, f"{_P}.path"),
    "secret": (lambda path: _keys("secret", path), f"{_S}.secret.items[0].path"),
    "configMap": (lambda path: _keys("configMap", path), f"{_S}.configMap.items[0].path"),
    "downward API": (_downward, f"{_S}.downwardAPI.path"),
    "trust bundle": (_bundle, f"{_S}.clusterTrustBundle.path"),
    "credential bundle": (
        lambda path: _certificate(credentialBundlePath=path),
        f"{_S}.podCertificate.credentialBundlePath",
    ),
    "key": (lambda path: _certificate(keyPath=path), f"{_S}.podCertificate.keyPath"),
    "certificate chain": (
        lambda path: _certificate(certificateChainPath=path),
        f"{_S}.podCertificate.certificateChainPath",
    ),
}


@pytest.mark.parametrize("wrong", _WRONG)
@pytest.mark.parametrize("place", _PLACES)
def test_projected_files_stay_inside_the_volume(place: str, wrong: str) -> None:
    """Every path that a projected source names is relative, leads nowhere else and is no reserved name."""
    source, field = _PLACES[place]
    path, texts = _WRONG[wrong]
    assert _projected(source(path)) == [_invalid(field, path, text) for text in texts]


@pytest.mark.parametrize("place", _PLACES)
def test_projected_files_in_folders_are_accepted(place: str) -> None:
    """A relative path with folders and dots in names is fine."""
    assert _projected(_PLACES[place][0]("a/b..c/.d")) == []


@pytest.mark.parametrize(
    ("sources", "shown"),
    [
        pytest.param([_keys("secret", "a", "a")], "n", id="twice in a secret"),
        pytest.param([_keys("secret", "a"), _keys("configMap", "a")], "n", id="secret and configMap"),
        pytest.param([_keys("configMap", "a"), _downward("a")], "a", id="configMap and downward API"),
        pytest.param([_downward("a"), _bundle("a")], "a", id="downward API and trust bundle"),
        pytest.param([_bundle("a"), _certificate(keyPath="a")], "a", id="trust bundle and key"),
        pytest.param([_certificate(keyPath="a", certificateChainPath="a")], "a", id="key and its chain"),
    ],
)
def test_projected_files_have_paths_of_their_own(sources: list[dict[str, Any]], shown: str) -> None:
    """No two sources may write one file; for keys the object is shown, for others the path."""
    assert _projected(*sources) == [_invalid(_P, shown, _CONFLICT)]


def test_projected_tokens_conflict_with_nothing() -> None:
    """Upstream does not compare the paths of tokens."""
    assert _projected(_token("a"), _token("a"), _keys("secret", "a")) == []


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        pytest.param({"secret": {}}, [f"{_S}.secret.name: Required value"], id="secret without a name"),
        pytest.param({"configMap": {}}, [f"{_S}.configMap.name: Required value"], id="configMap without a name"),
        pytest.param(_token(""), [f"{_P}.path: Required value"], id="token without a path"),
        pytest.param(
            {"serviceAccountToken": {"path": "t", "expirationSeconds": 599}},
            [
                f"{_S}.serviceAccountToken.expirationSeconds: Invalid value: 599: "
                "may not specify a duration less than 10 minutes"
            ],
            id="token of 599 s",
        ),
        pytest.param(
            {"serviceAccountToken": {"path": "t", "expirationSeconds": 2**32 + 1}},
            [
                f"{_S}.serviceAccountToken.expirationSeconds: Invalid value: 4294967297: "
                "may not specify a duration larger than 2^32 seconds"
            ],
            id="token of more than 2^32 s",
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "p"}]}},
            [f"{_S}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"],
            id="downward API without a field",
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}]}},
            [
                f'{_S}.downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: '
                '"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"'
            ],
            id="downward API with a field of variables only",
        ),
        pytest.param(
            {"clusterTrustBundle": {"path": "p"}},
            [f"{_S}.clusterTrustBundle: Required value: either name or signerName must be specified"],
            id="trust bundle of nobody",
        ),
        pytest.param(
            {"clusterTrustBundle": {"signerName": "a", "path": "p"}},
            [
                _invalid(
                    f"{_S}.clusterTrustBundle.signerName",
                    "a",
                    "must be a fully qualified domain and path of the form 'example.com/signer-name'",
                )
            ],
            id="trust bundle of a signer without a domain",
        ),
        pytest.param(
            _certificate(),
            [
                f"{_S}.podCertificate: Required value: "
                "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
            ],
            id="certificate without a path",
        ),
        pytest.param(
            {**_token("t"), **_keys("secret", "a")},
            [f"{_S}: Forbidden: may not specify more than 1 volume type per source"],
            id="two kinds of source",
        ),
    ],
)
def test_projected_sources_are_checked(source: dict[str, Any], faults: list[str]) -> None:
    """What a source lacks is said in upstream's words, and at upstream's fields."""
    assert _projected(source) == faults


@pytest.mark.parametrize("wrong", _WRONG)
@pytest.mark.parametrize(
    ("source", "field"),
    [
        pytest.param({"secretName": "n"}, "secret.items[0].path", id="secret"),
        pytest.param({"name": "n"}, "configMap.items[0].path", id="configMap"),
        pytest.param({}, "downwardAPI.path", id="downward API"),
    ],
)
def test_files_of_volumes_stay_inside_them(source: dict[str, Any], field: str, wrong: str) -> None:
    """Volumes of one source follow the same rule as projected ones."""
    path, texts = _WRONG[wrong]
    item = {"path": path, "fieldRef": _NAME} if field.startswith("downward") else {"path": path, "key": "k"}
    volume = _volume({field.partition(".")[0]: {**source, "items": [item]}})
    assert _faults(**volume) == [_invalid(f"{_V}.{field}", path, text) for text in texts]


@pytest.mark.parametrize(
    ("mount", "faults"),
    [
        pytest.param({"subPath": "/a"}, [_invalid(f"{_M}.subPath", "/a", _RELATIVE)], id="absolute"),
        pytest.param({"subPath": "a/.."}, [_invalid(f"{_M}.subPath", "a/..", _NO_BACKSTEP)], id="leading out"),
        pytest.param({"subPath": "..a"}, [], id="a name that only files must not have"),
        pytest.param({"subPathExpr": "../a"}, [_invalid(f"{_M}.subPathExpr", "../a", _NO_BACKSTEP)], id="expression"),
        pytest.param(
            {"mountPropagation": "Bidirectional"},
            [
                f"{_M}.mountPropagation: Forbidden: "
                "Bidirectional mount propagation is available only to privileged containers"
            ],
            id="propagation to the host",
        ),
    ],
)
def test_mounts_stay_inside_their_volume(mount: dict[str, Any], faults: list[str]) -> None:
    """Paths below a volume are relative and lead nowhere else; upstream's fields have no index."""
    mounts = [{"name": "v", "mountPath": "/m", **mount}]
    containers = [{"name": "c", "image": "i", "volumeMounts": mounts}]
    assert _faults(containers=containers, **_volume({"emptyDir": {}})) == faults


def test_stored_paths_of_tokens_are_borne_with() -> None:
    """A stored pod with a token's path that is refused today can still be changed, as upstream has it."""
    stored = _pod(_volume({"projected": {"sources": [_token("/etc/passwd")]}}))
    labelled = {**stored, "metadata": {"name": "web", "labels": {"a": "b"}}}
    assert _POD.strategy.validate(labelled, stored) == []


@pytest.mark.parametrize(
    ("action", "faults"),
    [
        pytest.param({"httpHeaders": [{"name": "X-A-1", "value": "v"}]}, [], id="header"),
        pytest.param({"httpHeaders": [{"name": "", "value": "v"}]}, [("", _HEADER)], id="no name"),
        pytest.param({"httpHeaders": [{"name": "X_A", "value": "v"}]}, [("X_A", _HEADER)], id="underscore"),
        pytest.param({"httpHeaders": [{"name": "X: y", "value": "v"}]}, [("X: y", _HEADER)], id="colon"),
        pytest.param({"httpHeaders": [{"name": "X\r\nY", "value": "v"}]}, [(r"X\r\nY", _HEADER)], id="line break"),
        pytest.param({"httpHeaders": [{"name": "X\n", "value": "v"}]}, [(r"X\n", _HEADER)], id="line break at the end"),
        pytest.param({"httpHeaders": [{"name": "X", "value": "a\r\nB: c"}]}, [], id="line break in a value"),
        pytest.param({"path": "/a b\r\nHost: x", "host": "x\r\n"}, [], id="line breaks in path and host"),
    ],
)
def test_headers_of_http_probes(action: dict[str, Any], faults: list[tuple[str, str]]) -> None:
    """Names of headers are checked; path, host and values may be anything for the API, and nodes refuse to send it."""
    probe = {"httpGet": {"port": 80, **action}}
    found = _faults(containers=[{"name": "c", "image": "i", "livenessProbe": probe}])
    assert found == [_invalid(f"{_G}.httpHeaders", name, text) for name, text in faults]
