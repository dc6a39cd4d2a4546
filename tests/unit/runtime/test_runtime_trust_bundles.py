"""Projected volumes with certificates of ClusterTrustBundles."""

import base64
from typing import Any

import pytest

from podscaler.controlplane.kubelet.volumes import volume_files
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement
from podscaler.controlplane.kubelet.volumes.volume_files import TRUST_BUNDLES, VolumeFile, VolumeSources

POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}}
PLACE = PodPlacement("127.0.0.2", "127.0.0.1", "node")


def pem(*contents: str) -> str:
    """A block for each content, which need not be a certificate: it was validated when it was stored."""
    encoded = (base64.b64encode(each.encode()).decode() for each in contents)
    return "".join(f"-----BEGIN CERTIFICATE-----\n{each}\n-----END CERTIFICATE-----\n" for each in encoded)


def bundle(name: str, text: str, signer: str = "", **labels: str) -> dict[str, Any]:
    """A ClusterTrustBundle."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"signerName": signer, "trustBundle": text}}


BUNDLES = {
    "plain": bundle("plain", f"# notes\n{pem('b')}text\n{pem('a')}"),
    "example.com:x:1": bundle("example.com:x:1", pem("c", "a"), "example.com/x", in_use="yes"),
    "example.com:x:2": bundle("example.com:x:2", pem("a", "d"), "example.com/x"),
    "example.com:y:1": bundle("example.com:y:1", pem("e"), "example.com/y", in_use="yes"),
}


def find(resource: str, namespace: str, name: str) -> Any:
    """The bundle of that name."""
    return BUNDLES.get(name) if (resource, namespace) == (TRUST_BUNDLES, "") else None


def projected(**source: Any) -> list[VolumeFile]:
    """The files of a volume with one source."""
    entry = {"clusterTrustBundle": {"path": "ca/roots.pem", **source}}
    volume = {"name": "v", "projected": {"defaultMode": 0o440, "sources": [entry]}}
    return volume_files.files(volume, POD, PLACE, VolumeSources(find, BUNDLES.values))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param({"name": "plain"}, pem("a", "b"), id="one bundle, without what is between its certificates"),
        pytest.param(
            {"signerName": "example.com/x", "labelSelector": {}}, pem("a", "c", "d"), id="each certificate once"
        ),
        pytest.param(
            {"signerName": "example.com/x", "labelSelector": {"matchLabels": {"in_use": "yes"}}},
            pem("a", "c"),
            id="labels",
        ),
        pytest.param({"name": "none", "optional": True}, "", id="an optional bundle that is not there"),
        pytest.param({"signerName": "example.com/x", "optional": True}, "", id="without selector: none"),
    ],
)
def test_the_file_of_trust_bundles(source: dict[str, Any], expected: str) -> None:
    """The certificates of the bundles, sorted, in one file with the mode of the volume."""
    assert projected(**source) == [VolumeFile("ca/roots.pem", expected.encode(), 0o440)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param({"name": "none"}, 'could not get ClusterTrustBundle "none"', id="name"),
        pytest.param(
            {"signerName": "example.com/z", "labelSelector": {}},
            'no ClusterTrustBundles of the signer "example.com/z" match the label selector',
            id="signer",
        ),
    ],
)
def test_a_missing_bundle(source: dict[str, Any], message: str) -> None:
    """The pod waits for it."""
    with pytest.raises(ContainerConfigError, match=message):
        projected(**source)


def test_a_long_certificate_has_lines_of_64_characters() -> None:
    """As PEM has them, whatever the lines of the bundle were."""
    (file,) = volume_files.files(
        {"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "a"}}]}},
        POD,
        PLACE,
        VolumeSources(lambda *_: bundle("x", pem("x" * 100))),
    )
    assert [len(line) for line in file.data.decode().splitlines()] == [27, 64, 64, 8, 25]


@pytest.mark.parametrize(("resource", "expected"), [(TRUST_BUNDLES, True), ("configmaps", False), ("secrets", False)])
def test_a_changed_bundle_concerns_volumes_with_any(resource: str, expected: bool) -> None:
    """A new bundle may match a selector, so that its name does not matter."""
    volume = {"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"signerName": "example.com/x"}}]}}
    assert volume_files.has_object(volume, resource, "other") is expected
