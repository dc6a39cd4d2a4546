"""Maps image names to programs and root file systems of this machine, by `--image` and by a ConfigMap.

`podscaler.cli.up.machine` makes one `ImageMap` of the flags, and `kubelet.node_agent` updates it when the ConfigMap
`kube-system/podscaler-images` changes; containers are started with the command that `resolve` returns. A name with a
tag or digest is that one only, a name without one is every tag. The order is: the ConfigMap, `--image`, the built-in
images (`images`). A path is

* a program: it runs where the container has no `command`, and in place of a `command` whose last part is its name;
* an OCI bundle: a folder with `config.json` (args, env, cwd and uid of its process) and the root file system that it
  names;
* any other folder: a root file system without an entry point.

A new kind of path is a case of `_from_path`; a new field of an entry, one of `ImageEntry` that is applied there.

Source: bundle.md and config.md of the OCI runtime specification 1.2.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import msgspec

from podscaler.api.text import yaml_text
from podscaler.api.text.json_text import DecodeError
from podscaler.base.errors import UsageError
from podscaler.controlplane.kubelet.launching import images
from podscaler.controlplane.kubelet.launching.images import ImageCommand

NAMESPACE: Final = "kube-system"
NAME: Final = "podscaler-images"
"""Namespace and name of the ConfigMap."""
_BUNDLE_CONFIG: Final = "config.json"
_BUNDLE_BYTES_MAX: Final = 1 << 20

ImageTable = Mapping[str, ImageCommand]
"""Image name, with its tag or digest if it has one -> command."""
UserId = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A user id in the range that the API accepts (`runAsUser`)."""


class ImageEntry(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """One entry of the ConfigMap, or of a flag `--image`; a field of None is that of the OCI bundle, or has no value.

    Attributes:
        image: the name.
        path: absolute, on this machine.
        command, env, user, working_dir: of the image's process; `user` is a numeric id.
    """

    image: str
    path: str
    command: list[str] | None = None
    env: dict[str, str] | None = None
    user: UserId | None = None
    working_dir: str | None = None


class BundleRoot(msgspec.Struct):
    """`root` of an OCI bundle's configuration; `path` is relative to the bundle."""

    path: str


class BundleUser(msgspec.Struct):
    """`process.user` of an OCI bundle's configuration; a uid of None: the user of `up`."""

    uid: UserId | None = None


class BundleProcess(msgspec.Struct):
    """`process` of an OCI bundle's configuration; `env` has lines NAME=VALUE."""

    args: list[str] | None = None
    env: list[str] | None = None
    cwd: str | None = None
    user: BundleUser | None = None


class BundleConfig(msgspec.Struct):
    """The fields of the `config.json` of an OCI bundle that are used."""

    root: BundleRoot
    process: BundleProcess | None = None


def parse_flag(flag: str) -> ImageEntry:
    """The entry of `--image NAME=PATH`. Raises UsageError.

    Args:
        flag: `NAME=PATH`; a relative path is below the current directory, and `~` is a home.
    """
    name, equals, path = flag.partition("=")
    if not (name and equals and path):
        raise UsageError(f"--image {flag}: it must be NAME=PATH")
    try:
        return ImageEntry(name, str(Path(path).expanduser().absolute()))
    except RuntimeError as error:  # the home of an unknown user
        raise UsageError(f"--image {flag}: {error}") from error


def read_entries(entries: Sequence[ImageEntry]) -> dict[str, ImageCommand]:
    """The table of these entries, which `ImageMap` takes for the flags `--image`. Blocks. Raises UsageError."""
    return {images.without_default_registry(entry.image): _command_of(entry) for entry in entries}


def _command_of(entry: ImageEntry) -> ImageCommand:
    """The command of an entry. Raises UsageError, also where its path cannot be read."""
    for name in entry.env or {}:
        if not name or "=" in name or "\0" in name:
            raise UsageError(
                f"the environment of the image {entry.image} has a variable with an invalid name: {name!r}"
            )
    try:
        return _from_path(entry, Path(entry.path))
    except (OSError, ValueError) as error:  # a name that is too long, a zero byte
        raise UsageError(f"the path of the image {entry.image} cannot be used: {error}") from error


def _from_path(entry: ImageEntry, path: Path) -> ImageCommand:
    """The command of the program, OCI bundle or root file system at `path`, changed by the fields of `entry`.

    Raises UsageError.
    """
    if not path.is_absolute():
        raise UsageError(f"the path of the image {entry.image} is not absolute: {path}")
    if path.is_dir():
        is_bundle = (path / _BUNDLE_CONFIG).is_file()
        command = _read_bundle(path) if is_bundle else ImageCommand((), root=str(path.resolve()))
    elif os.access(path, os.X_OK):
        command = ImageCommand((str(path),), program_name=path.name)
    else:
        raise UsageError(f"the path of the image {entry.image} is no folder and no program: {path}")
    return replace(
        command,
        argv=command.argv if entry.command is None else tuple(entry.command),
        env=command.env if entry.env is None else entry.env,
        user=command.user if entry.user is None else entry.user,
        working_dir=command.working_dir if entry.working_dir is None else entry.working_dir,
    )


def _read_bundle(folder: Path) -> ImageCommand:
    """The command of the OCI bundle at `folder`. Raises UsageError."""
    path = folder / _BUNDLE_CONFIG
    try:
        with path.open("rb") as file:
            config = msgspec.json.decode(file.read(_BUNDLE_BYTES_MAX), type=BundleConfig)
        root = (folder / config.root.path).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links that form a loop, JSON that is too deep
        raise UsageError(f"{path} is no configuration of an OCI bundle: {error}") from error
    process = config.process or BundleProcess()
    return ImageCommand(
        tuple(process.args or ()),
        env={name: value for name, _, value in (line.partition("=") for line in process.env or ())},
        args_replace=True,
        root=str(root),
        user=process.user.uid if process.user else None,
        working_dir=process.cwd or "",
    )


class ImageMap:
    """The command of every image name.

    Args:
        flag_table: the commands of `--image` (`read_entries`).
    """

    def __init__(self, flag_table: ImageTable) -> None:
        self._flag_table = flag_table
        self._config_map_table: ImageTable = {}

    def resolve(self, image: str) -> ImageCommand | None:
        """The command of an image name, None for an unknown image."""
        name_with_tag = images.without_default_registry(image)
        name = images.without_tag(name_with_tag)
        for table in (self._config_map_table, self._flag_table):
            mapped = table.get(name_with_tag) or table.get(name)
            if mapped is not None:
                return mapped
        return images.resolve(image)

    def update(self, data: Mapping[str, str]) -> list[str]:
        """Replace the table of the ConfigMap; returns the errors of entries, which are left out. Blocks.

        Args:
            data: `data` of the ConfigMap: any key -> an `ImageEntry` as YAML.
        """
        table: dict[str, ImageCommand] = {}
        errors = []
        for key, entry_yaml in data.items():
            try:
                entry = msgspec.convert(yaml_text.parse(entry_yaml.encode()).value, ImageEntry)
                table |= read_entries([entry])
            except (UsageError, DecodeError, msgspec.ValidationError) as error:
                errors.append(f"data[{key}]: {error}")
        self._config_map_table = table
        return errors
