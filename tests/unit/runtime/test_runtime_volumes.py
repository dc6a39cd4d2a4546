"""Volumes: what is written to disk for a pod, and what each container mounts of it."""

import base64
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podscaler.controlplane.kubelet.launching import openat2
from podscaler.controlplane.kubelet.launching.container_config import Mount
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.kubelet.volumes import volume_files, volumes
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement
from podscaler.controlplane.kubelet.volumes.volume_files import VolumeFile, VolumeSources

PLACE = PodPlacement("127.2.1.1", "127.2.0.1", "vm")
OBJECTS = {
    ("configmaps", "cm"): {"data": {"a": "1", "b": "2"}, "binaryData": {"bin": base64.b64encode(b"\0").decode()}},
    ("secrets", "sec"): {"data": {"key": base64.b64encode(b"hidden").decode()}},
}


def find(resource: str, namespace: str, name: str) -> dict[str, Any] | None:
    return OBJECTS.get((resource, name))


@pytest.fixture
async def threads() -> AsyncIterator[ThreadPool]:
    found = ThreadPool()
    yield found
    found.close()


def pod(*volumes_: dict[str, Any], mounts: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    used = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes_]
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"volumes": list(volumes_), "containers": [{"name": "c", "volumeMounts": mounts or used}]},
    }


def tree(folder: str) -> dict[str, tuple[bytes, str]]:
    """Content and mode of every file."""
    root = Path(folder)
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(p.relative_to(root)): (p.read_bytes(), oct(p.stat().st_mode & 0o777)) for p in files}


CONTENTS = VolumeSources(find)
NOTHING = VolumeSources(lambda *_: None)


async def prepared(tmp_path: Path, threads: ThreadPool, *volumes_: dict[str, Any]) -> dict[str, str]:
    return await volumes.prepare(pod(*volumes_), PLACE, sources=CONTENTS, paths=NodePaths(tmp_path), threads=threads)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(
            {"configMap": {"name": "cm"}},
            {"a": (b"1", "0o644"), "b": (b"2", "0o644"), "bin": (b"\0", "0o644")},
            id="every key of a configMap",
        ),
        pytest.param(
            {"configMap": {"name": "cm", "items": [{"key": "a", "path": "x/y", "mode": 0o600}], "defaultMode": 0o444}},
            {"x/y": (b"1", "0o600")},
            id="chosen keys with paths and modes",
        ),
        pytest.param({"secret": {"secretName": "sec"}}, {"key": (b"hidden", "0o644")}, id="a secret, decoded"),
        pytest.param(
            {"secret": {"secretName": "sec", "defaultMode": 0o400}}, {"key": (b"hidden", "0o400")}, id="a default mode"
        ),
        pytest.param({"configMap": {"name": "none", "optional": True}}, {}, id="an optional one that is absent"),
        pytest.param(
            {
                "downwardAPI": {
                    "items": [
                        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                        {"path": "ip", "fieldRef": {"fieldPath": "status.podIP"}},
                    ]
                }
            },
            {"ip": (b"127.2.1.1", "0o644"), "labels": (b'app="web"', "0o644")},
            id="the downward API",
        ),
        pytest.param(
            {
                "projected": {
                    "defaultMode": 0o440,
                    "sources": [
                        {"configMap": {"name": "cm", "items": [{"key": "a", "path": "a"}]}},
                        {"secret": {"name": "sec"}},
                        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                    ],
                }
            },
            {"a": (b"1", "0o440"), "key": (b"hidden", "0o440"), "n": (b"p", "0o440")},
            id="several in one",
        ),
    ],
)
async def test_contents(
    tmp_path: Path, threads: ThreadPool, volume: dict[str, Any], expected: dict[str, tuple[bytes, str]]
) -> None:
    """The files of each kind of volume."""
    found = await prepared(tmp_path, threads, {"name": "v", **volume})
    assert tree(found["v"]) == expected


async def test_an_empty_dir_keeps_what_is_in_it(tmp_path: Path, threads: ThreadPool) -> None:
    """It is for everybody, and outlives restarts of containers and of the node."""
    found = await prepared(tmp_path, threads, {"name": "v", "emptyDir": {}})
    Path(found["v"], "kept").write_text("x")
    again = await prepared(tmp_path, threads, {"name": "v", "emptyDir": {}})
    assert (again, Path(found["v"], "kept").exists()) == (found, True)
    assert Path(found["v"]).stat().st_mode & 0o777 == 0o777


async def test_volumes_that_nobody_mounts_are_not_made(tmp_path: Path, threads: ThreadPool) -> None:
    """A missing ConfigMap that no container mounts does no harm."""
    found = pod({"name": "v", "configMap": {"name": "none"}}, mounts=[{"name": "other", "mountPath": "/x"}])
    assert await volumes.prepare(found, PLACE, sources=CONTENTS, paths=NodePaths(tmp_path), threads=threads) == {}


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"secret": {"secretName": "none"}}, 'secret "none" not found'),
        (
            {"configMap": {"name": "cm", "items": [{"key": "z", "path": "z"}]}},
            "references non-existent config key: z (ConfigMap cm)",
        ),
        (
            {"configMap": {"name": "cm", "items": [{"key": "a", "path": "../a"}]}},
            '"../a" is no path within a volume',
        ),
        (
            {"persistentVolumeClaim": {"claimName": "x"}},
            'volume "v" is of a kind that this node does not have: persistentVolumeClaim',
        ),
        ({"projected": {"sources": [{"serviceAccountToken": {}}]}}, "this node cannot project serviceAccountToken"),
        ({"hostPath": {"path": "/does/not/exist"}}, "hostPath /does/not/exist does not exist"),
        (
            {"hostPath": {"path": "/a\0b", "type": "DirectoryOrCreate"}},
            "hostPath holds a NUL byte, which no path can have",
        ),
    ],
)
async def test_volumes_that_cannot_be_made(
    tmp_path: Path, threads: ThreadPool, volume: dict[str, Any], message: str
) -> None:
    """The container stays in ContainerCreating; the message says why."""
    with pytest.raises(ContainerConfigError) as caught:
        await prepared(tmp_path, threads, {"name": "v", **volume})
    assert (caught.value.reason, caught.value.message) == ("ContainerCreating", message)


async def test_a_pipe_of_the_machine_is_not_opened(tmp_path: Path, threads: ThreadPool) -> None:
    """FileOrCreate makes a file, keeps what is there, and does not wait for the reader of a named pipe."""
    os.mkfifo(tmp_path / "pipe")
    source = {"path": str(tmp_path / "pipe"), "type": "FileOrCreate"}
    with pytest.raises(ContainerConfigError, match="pipe is not a file"):
        await prepared(tmp_path, threads, {"name": "v", "hostPath": source})
    made = {"path": str(tmp_path / "new"), "type": "FileOrCreate"}
    found = await prepared(tmp_path, threads, {"name": "v", "hostPath": made})
    assert (found, (tmp_path / "new").read_bytes()) == ({"v": str(tmp_path / "new")}, b"")


async def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path, threads: ThreadPool) -> None:
    """DirectoryOrCreate does not end with an error of the operating system."""
    (tmp_path / "file").touch()
    source = {"path": str(tmp_path / "file"), "type": "DirectoryOrCreate"}
    with pytest.raises(ContainerConfigError, match="file is not a directory"):
        await prepared(tmp_path, threads, {"name": "v", "hostPath": source})


def test_a_mount_of_the_root_comes_first(tmp_path: Path) -> None:
    """The mounts below it would be hidden."""
    mounts = [{"name": "data", "mountPath": path} for path in ("/a/b", "/a", "/")]
    found = volumes.prepare_mounts(
        pod({"name": "data", "emptyDir": {}}, mounts=mounts),
        {"volumeMounts": mounts},
        {"data": str(tmp_path)},
        {},
    )
    assert [mount.target for mount in found] == ["/", "/a", "/a/b"]


def test_mounts_of_a_container(tmp_path: Path) -> None:
    """Parents first; objects are read-only; subPath and subPathExpr lead into the volume."""
    (tmp_path / "data").mkdir(mode=0o777)
    (tmp_path / "data").chmod(0o777)
    mounts = [
        {"name": "data", "mountPath": "/srv/data/deep", "subPathExpr": "logs/$(POD)"},
        {"name": "cm", "mountPath": "/etc/app/"},
        {"name": "data", "mountPath": "/srv/data", "readOnly": True},
    ]
    found = pod({"name": "data", "emptyDir": {}}, {"name": "cm", "configMap": {"name": "cm"}}, mounts=mounts)
    sources = {"data": str(tmp_path / "data"), "cm": "/cm"}
    assert volumes.prepare_mounts(found, found["spec"]["containers"][0], sources, {"POD": "p1"}) == (
        Mount("/cm", "/etc/app", True),
        Mount(f"{tmp_path}/data", "/srv/data", True),
        Mount(f"{tmp_path}/data", "/srv/data/deep", False, "logs/p1"),
    )
    assert stat.S_IMODE((tmp_path / "data/logs/p1").stat().st_mode) == 0o777, "with the volume's mode, as kubelet does"


@pytest.fixture(params=["openat2", "by components"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to stay within a folder."""
    if request.param == "by components":
        monkeypatch.setattr(openat2, "_SYS_OPENAT2", 100_000)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "sub_path", ["link", "link/ssl", "link/new/deep", "up/new", "dangling/new", "../x", "/x", "a\0b"]
)
def test_a_sub_path_cannot_lead_out(tmp_path: Path, sub_path: str) -> None:
    """Neither by dots nor by a symbolic link that a container made; and nothing is made outside on the way."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "data" / "up").symlink_to("../outside")
    (tmp_path / "data" / "dangling").symlink_to("../none")
    found = pod({"name": "data", "emptyDir": {}})
    container = {"name": "c", "volumeMounts": [{"name": "data", "mountPath": "/x", "subPath": sub_path}]}
    with pytest.raises(ContainerConfigError):
        volumes.prepare_mounts(found, container, {"data": str(tmp_path / "data")}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "outside"]
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_sub_path_follows_links_within_its_volume(tmp_path: Path) -> None:
    """A relative symbolic link of the volume that stays in it is followed, where the kernel can tell."""
    (tmp_path / "data" / "real").mkdir(parents=True)
    (tmp_path / "data" / "link").symlink_to("real")
    found = pod({"name": "data", "emptyDir": {}})
    container = {"name": "c", "volumeMounts": [{"name": "data", "mountPath": "/x", "subPath": "link/new"}]}
    volumes.prepare_mounts(found, container, {"data": str(tmp_path / "data")}, {})
    assert (tmp_path / "data" / "real" / "new").is_dir()


@pytest.mark.usefixtures("way")
def test_files_of_a_volume_stay_in_it(tmp_path: Path) -> None:
    """A path that a symbolic link leads out of the volume is an error; what is there is replaced, not followed."""
    (tmp_path / "v").mkdir()
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "v" / "out").symlink_to(tmp_path)
    (tmp_path / "v" / "file").symlink_to(tmp_path / "kept")
    with pytest.raises(OSError, match="out"):
        volume_files.write(tmp_path / "v", VolumeFile("out/kept", b"new", 0o644), group=None)
    volume_files.write(tmp_path / "v", VolumeFile("file", b"new", 0o640), group=None)
    assert (tmp_path / "kept").read_text() == "kept"
    assert tree(str(tmp_path / "v")) == {"file": (b"new", "0o640")}


TOKEN = {"serviceAccountToken": {"path": "token"}}
REFRESHED: Any = [
    pytest.param(
        {"secret": {"secretName": "late", "optional": True}},
        (None, {"data": {"key": "aGlkZGVu"}}),
        {"key": (b"hidden", "0o644")},
        id="an optional secret that comes later",
    ),
    pytest.param(
        {"secret": {"secretName": "late", "items": [{"key": "a", "path": "x/a", "mode": 0o600}]}},
        ({"data": {"a": "MQ=="}}, {"data": {"a": "Mg==", "b": "Mg=="}}),
        {"x/a": (b"2", "0o600")},
        id="a changed key at its path",
    ),
    pytest.param(
        {"secret": {"secretName": "late"}},
        ({"data": {"a": "MQ==", "b": "Mg=="}}, {"data": {"b": "Mg=="}}),
        {"b": (b"2", "0o644")},
        id="a removed key",
    ),
    pytest.param(
        {"projected": {"sources": [TOKEN, {"secret": {"name": "late"}}]}},
        ({"data": {"a": "MQ=="}}, {"data": {"b": "Mg=="}}),
        {"b": (b"2", "0o644"), "token": (b"token-1", "0o644")},
        id="a token stays as it is",
    ),
    pytest.param(
        {"configMap": {"name": "late", "optional": True}},
        (None, {"data": {"a": "MQ=="}}),
        {},
        id="a configMap of the same name is another object",
    ),
]


@pytest.mark.parametrize(("volume", "versions", "expected"), REFRESHED)
async def test_a_changed_secret_reaches_the_volumes(
    tmp_path: Path, threads: ThreadPool, volume: Any, versions: Any, expected: Any
) -> None:
    """The files of a running pod are those of the present Secret; a token is not issued again."""
    objects: dict[tuple[str, str], Any] = {("secrets", "late"): versions[0]}
    tokens = iter(("token-1", "token-2"))
    known: Any = {
        "sources": VolumeSources(
            lambda resource, _, name: objects.get((resource, name)), issue_token=lambda *_: next(tokens)
        ),
        "paths": NodePaths(tmp_path),
        "threads": threads,
    }
    owner = pod({"name": "v", **volume})
    sources = await volumes.prepare(owner, PLACE, **known)
    objects["secrets", "late"] = versions[1]
    await volumes.refresh(owner, PLACE, ("secrets", "late"), **known)
    assert tree(sources["v"]) == expected


async def test_a_deleted_secret_leaves_the_volumes(tmp_path: Path, threads: ThreadPool) -> None:
    """The files stay, and the caller gets the error."""
    owner = pod({"name": "v", "secret": {"secretName": "sec"}})
    sources = await volumes.prepare(owner, PLACE, sources=CONTENTS, paths=NodePaths(tmp_path), threads=threads)
    with pytest.raises(ContainerConfigError, match='secret "sec" not found'):
        await volumes.refresh(
            owner,
            PLACE,
            ("secrets", "sec"),
            sources=NOTHING,
            paths=NodePaths(tmp_path),
            threads=threads,
        )
    assert tree(sources["v"]) == {"key": (b"hidden", "0o644")}


async def test_an_equal_file_is_not_written_again(tmp_path: Path, threads: ThreadPool) -> None:
    """A file keeps its inode, so that programs which watch it do not read it again."""
    owner = pod({"name": "v", "secret": {"secretName": "sec"}})
    sources = await volumes.prepare(owner, PLACE, sources=CONTENTS, paths=NodePaths(tmp_path), threads=threads)
    file = Path(sources["v"]) / "key"
    former = file.stat().st_ino
    await volumes.refresh(
        owner, PLACE, ("secrets", "sec"), sources=CONTENTS, paths=NodePaths(tmp_path), threads=threads
    )
    assert file.stat().st_ino == former
