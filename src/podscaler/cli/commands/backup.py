"""`podscaler backup` writes a cluster of `podscaler up` into one file; `podscaler restore` makes a cluster from it.

`podscaler.cli.main` registers both commands. Flags and messages are here; `podscaler.controlplane.storage.backup` and
`podscaler.controlplane.storage.restore` do the work. A new flag is an option here, and a parameter there.
"""

from pathlib import Path

import click

from podscaler.cli.commands import data_dir as data_dirs


@click.command(epilog="Example: podscaler backup --data-dir data cluster.backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data-dir", type=click.Path(path_type=Path), default=None, help="that of `podscaler up`")
@click.option("--force", is_flag=True, help="replace an existing file")
@click.option("--salvage", is_flag=True, help="of a damaged database, save what can be read and list the rest")
def command(*, file: Path, data_dir: Path | None, force: bool, salvage: bool) -> None:
    """Write a cluster of `podscaler up`, which may be running, into one FILE.

    FILE holds all objects as of one moment, Secrets too, and the cluster's keys and tokens: it gives every reader
    the rights of the cluster's admin. Its mode is 0600. The exit status is 1 if a salvage had to leave something out.
    """
    from podscaler.controlplane.storage import backup as backups

    directory, path = data_dirs.absolute_path(data_dir), file.expanduser().absolute()
    backup = backups.write(directory, path, is_forced=force, is_salvage=salvage)
    click.echo(
        f"{path} holds {backup.objects} objects of {directory} as of revision {backup.revision}, and its credentials"
    )
    for line in backup.lost:
        click.echo(f"podscaler: {line}", err=True)
    if backup.lost:
        raise click.exceptions.Exit(1)


@click.command(epilog="Example: podscaler restore --data-dir data cluster.backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data-dir", type=click.Path(path_type=Path), default=None, help="that of `podscaler up`")
@click.option("--force", is_flag=True, help="move an existing cluster aside, into a folder of the data dir")
def restore(*, file: Path, data_dir: Path | None, force: bool) -> None:
    """Make a cluster out of FILE, which `podscaler backup` wrote.

    `podscaler up` on the data dir must be stopped; the next one has the objects of the backup, and knows its
    kubeconfigs and tokens. Nothing is changed if FILE is damaged, or if there is a cluster already and no --force.
    """
    from podscaler.controlplane.storage import restore as restores

    directory, path = data_dirs.absolute_path(data_dir), file.expanduser().absolute()
    backup, former_folder = restores.restore(path, directory, is_forced=force)
    click.echo(f"{directory} holds {backup.objects} objects of {path} as of revision {backup.revision}")
    if former_folder is not None:
        click.echo(f"the former cluster is in {former_folder}")
