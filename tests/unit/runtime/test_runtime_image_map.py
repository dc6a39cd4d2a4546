"""Image names that `--image` and the ConfigMap map to paths of this machine."""

import json
from pathlib import Path

import pytest

from podscaler.base.errors import UsageError
from podscaler.controlplane.kubelet.launching import image_map, images
from podscaler.controlplane.kubelet.launching.image_map import ImageEntry, ImageMap
from podscaler.controlplane.kubelet.launching.images import ImageCommand


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program of this machine."""
    path = tmp_path / "server"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """An OCI bundle."""
    folder = tmp_path / "bundle"
    (folder / "rootfs").mkdir(parents=True)
    process = {"args": ["/app", "--serve"], "env": ["A=1", "B=x=y"], "cwd": "/srv", "user": {"uid": 1000, "gid": 1000}}
    (folder / "config.json").write_text(json.dumps({"process": process, "root": {"path": "rootfs"}}))
    return folder


def mapped(*flags: str) -> ImageMap:
    """The map of these flags."""
    return ImageMap(image_map.read_entries([image_map.parse_flag(each) for each in flags]))


@pytest.mark.parametrize(
    "image",
    ["ghcr.io/a/server", "ghcr.io/a/server:1.2", "ghcr.io/a/server:1.2@sha256:12"],
)
def test_a_name_without_a_tag_is_every_tag(program: Path, image: str) -> None:
    found = mapped(f"ghcr.io/a/server={program}").resolve(image)
    assert found == ImageCommand((str(program),), program_name="server")


@pytest.mark.parametrize("user", [-1, 2**31, 99999999999999])
def test_a_user_out_of_range_is_refused(bundle: Path, user: int) -> None:
    """The API has the same range for runAsUser."""
    (bundle / "config.json").write_text(json.dumps({"process": {"user": {"uid": user}}, "root": {"path": "rootfs"}}))
    with pytest.raises(UsageError, match="no configuration of an OCI bundle"):
        mapped(f"app={bundle}")


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
def test_the_name_of_a_variable_is_checked(program: Path, name: str) -> None:
    with pytest.raises(UsageError, match="invalid name"):
        image_map.read_entries([ImageEntry("app", str(program), env={name: "1"})])


def test_a_name_with_a_tag_is_that_one(program: Path, bundle: Path) -> None:
    images_of = mapped(f"server={program}", f"server:2={bundle}")
    found = [images_of.resolve(f"docker.io/library/server:{tag}") for tag in (1, 2)]
    assert [each.root if each else None for each in found] == ["", str(bundle / "rootfs")]


def test_a_bundle_says_how_its_process_is_started(bundle: Path) -> None:
    assert mapped(f"app={bundle}").resolve("app") == ImageCommand(
        ("/app", "--serve"),
        env={"A": "1", "B": "x=y"},
        args_replace=True,
        root=str(bundle / "rootfs"),
        user=1000,
        working_dir="/srv",
    )


def test_a_folder_is_a_root_file_system(tmp_path: Path) -> None:
    assert mapped(f"app={tmp_path}").resolve("app") == ImageCommand((), root=str(tmp_path))


def test_a_command_with_the_name_of_the_program_runs_it(program: Path) -> None:
    found = mapped(f"server={program}").resolve("server")
    assert found is not None
    assert found.replace_program(("/usr/bin/server", "--port=1")) == (str(program), "--port=1")
    assert found.replace_program(("/bin/sh", "-c", "true")) == ("/bin/sh", "-c", "true")


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        pytest.param("server", "it must be NAME=PATH", id="no path"),
        pytest.param("=/bin/sh", "it must be NAME=PATH", id="no name"),
        pytest.param("server=/nowhere/server", "is no folder and no program", id="missing"),
        pytest.param("server=/" + "x" * 300, "cannot be used: .*File name too long", id="too long"),
        pytest.param("server=~no-such-user/server", "Could not determine home directory", id="unknown home"),
    ],
)
def test_wrong_flags(flag: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mapped(flag)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("{}", id="no root"),
        pytest.param('{"root": {"path": "elsewhere"}}', id="missing root"),
        pytest.param('{"root": {"path": "rootfs"}, "process": {"env": [1]}}', id="wrong type"),
        pytest.param('{"root": {"path": "rootfs"}, "process": {"args": [1]}}', id="a number as argument"),
        pytest.param('{"root": {"path": "rootfs"}, "process": {"cwd": 5}}', id="a number as folder"),
        pytest.param('{"root": {"path": "rootfs"}, "process": {"user": {"uid": "app"}}}', id="a name as user"),
        pytest.param('{"root": {"path": "root\\u0000fs"}}', id="zero byte"),
        pytest.param('{"root": {"path": "rootfs"}, "x": ' + "[" * 100_000, id="too deep"),
    ],
)
def test_wrong_bundles(bundle: Path, config: str) -> None:
    (bundle / "config.json").write_text(config)
    with pytest.raises(UsageError, match="is no configuration of an OCI bundle"):
        mapped(f"app={bundle}")


def test_a_link_to_itself_is_no_root(bundle: Path) -> None:
    (bundle / "loop").symlink_to("loop")
    (bundle / "config.json").write_text('{"root": {"path": "loop"}}')
    with pytest.raises(UsageError, match="is no configuration of an OCI bundle"):
        mapped(f"app={bundle}")


def test_nulls_of_a_bundle_are_absent(bundle: Path) -> None:
    process = {"args": None, "env": None, "user": None}
    (bundle / "config.json").write_text(json.dumps({"process": process, "root": {"path": "rootfs"}}))
    expected = ImageCommand((), args_replace=True, root=str(bundle / "rootfs"))
    assert mapped(f"app={bundle}").resolve("app") == expected


def test_the_config_map_wins_until_it_is_gone(program: Path, tmp_path: Path) -> None:
    images_of = mapped(f"server={program}")
    text = f"image: server\npath: {tmp_path}\ncommand: [/app]\nenv: {{A: b}}\nuser: 7\nworkingDir: /srv\n"
    assert images_of.update({"server": text}) == []
    expected = ImageCommand(("/app",), env={"A": "b"}, root=str(tmp_path), user=7, working_dir="/srv")
    assert images_of.resolve("server:1") == expected
    images_of.update({})
    assert images_of.resolve("server:1") == ImageCommand((str(program),), program_name="server")


def test_wrong_entries_are_left_out(tmp_path: Path) -> None:
    images_of = ImageMap({})
    data = {
        "a": "image: [",
        "b": "image: x",
        "c": "image: x\npath: there",
        "d": f"image: x\npath: /{'x' * 300}",
        "e": 'image: x\npath: "/a\\0b"',
        "f": f"image: good\npath: {tmp_path}",
    }
    errors = images_of.update(data)
    assert [each.split(":")[0] for each in errors] == ["data[a]", "data[b]", "data[c]", "data[d]", "data[e]"]
    assert images_of.resolve("good") is not None


def test_other_names_are_the_built_in_images() -> None:
    assert ImageMap({}).resolve("busybox:1.36") == images.resolve("busybox")


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(UsageError, match="is not absolute"):
        image_map.read_entries([ImageEntry("a", "bin/sh")])
