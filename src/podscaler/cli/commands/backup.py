"""`podscaler backup`: a cluster of `up` as one file."""

from pathlib import Path

import click

from podscaler.cli.commands import data_dir as data_dirs


@click.command(epilog="Example: podscaler backup --data-dir data cluster.backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data-dir", type=click.Path(path_type=Path), default=None, help="that of `podscaler up`")
@click.option("--force", is_flag=True, help="replace a file that is there")
@click.option("--salvage", is_flag=True, help="of a damaged database, save what can be read and list the rest")
def command(*, file: Path, data_dir: Path | None, force: bool, salvage: bool) -> None:
    """Write a cluster of `podscaler up` into one FILE, while it runs or not.

    FILE holds all objects as of one moment, Secrets too, and the cluster's keys and tokens: who can read it can do what
    the cluster's admin can. Its mode is 0600. The exit status is 1 if a salvage had to leave something out.
    """
    from podscaler.controlplane.storage import backup as backups

    directory, path = data_dirs.absolute(data_dir), file.expanduser().absolute()
    made = backups.write(directory, path, is_forced=force, is_salvage=salvage)
    click.echo(
        f"{path} holds {made.objects} objects of {directory} as of revision {made.revision}, and its credentials"
    )
    for line in made.lost:
        click.echo(f"podscaler: {line}", err=True)
    if made.lost:
        raise click.exceptions.Exit(1)
