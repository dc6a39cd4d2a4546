"""`podscaler restore`: a cluster of `up` out of a file that `podscaler backup` wrote."""

from pathlib import Path

import click

from podscaler.cli.commands import data_dir as data_dirs


@click.command(epilog="Example: podscaler restore --data-dir data cluster.backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data-dir", type=click.Path(path_type=Path), default=None, help="that of `podscaler up`")
@click.option("--force", is_flag=True, help="move a cluster that is there aside, into a folder of the data dir")
def command(*, file: Path, data_dir: Path | None, force: bool) -> None:
    """Make a cluster out of FILE, which `podscaler backup` wrote.

    `podscaler up` on the data dir must be stopped; the next one has the objects of the backup, and knows its
    kubeconfigs and tokens. Nothing is changed if FILE is damaged, or if there is a cluster already and no --force.
    """
    from podscaler.controlplane.storage import restore as restores

    directory, path = data_dirs.absolute(data_dir), file.expanduser().absolute()
    found, aside = restores.restore(path, directory, is_forced=force)
    click.echo(f"{directory} holds {found.objects} objects of {path} as of revision {found.revision}")
    if aside is not None:
        click.echo(f"what was there before is in {aside}")
