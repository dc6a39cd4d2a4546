"""`podscaler lint`: checks manifests, or the objects of a cluster, by rules.

`podscaler.cli.main` registers the command. It reads objects (`lint_files`, `cluster_reader`), runs `podscaler.lint`,
and prints (`lint_output`, `lint_sarif`). A new output format: a value of `--output` and a case in `_report_text`; a new
rule needs no change here.
"""

import asyncio
from collections.abc import Sequence
from typing import TypedDict, Unpack

import click

from podscaler.base.clock import SystemClock
from podscaler.base.errors import UsageError
from podscaler.cli.lint import lint_files, lint_output, lint_sarif
from podscaler.cli.lint.lint_output import LintReport
from podscaler.cli.options.flags import kubeconfig_options
from podscaler.lint import linter
from podscaler.lint.model import reading
from podscaler.lint.model.lint_context import LintedCluster, is_autoscaler
from podscaler.lint.model.linted_item import Item

EXAMPLE = """\b
Examples:
  podscaler lint deploy/
  helm template shop | podscaler lint - -o sarif > lint.sarif
  podscaler lint --live -n shop
  podscaler lint hpa.yaml --live
"""


class _Options(TypedDict):
    """The flags that select what is checked, as click passes them; None for a text that is not given."""

    live: bool
    namespace: str | None
    all_namespaces: bool
    kubeconfig: str | None
    context: str | None


@click.command(epilog=EXAMPLE)
@click.argument("files", type=click.Path(), metavar="[FILE]...", nargs=-1)
@click.option(
    "--live", is_flag=True, help="check the objects of a cluster, or FILE with the objects of a cluster as context"
)
@click.option(
    "-n", "--namespace", metavar="NAMESPACE", help="of objects that name none, and the one to check in a cluster"
)
@click.option("-A", "--all-namespaces", is_flag=True, help="check all namespaces of the cluster")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml", "sarif"]), default="text", show_default=True)
@kubeconfig_options
@click.pass_context
def command(ctx: click.Context, /, *, files: Sequence[str], output: str, **options: Unpack[_Options]) -> None:
    """Say what is wrong or dangerous in manifests, or live in a cluster.

    FILE is YAML or JSON with any number of documents, a folder (its .yaml, .yml and .json files), or '-' for standard
    input; all files are judged together. docs/lint.md explains every rule. An object's annotation
    podscaler.dev/lint-ignore: PSL005,PSL010 switches rules off. Exit status: 0 no findings, 1 findings, 2 wrong use.
    """
    _check_options(files, options)
    if _is_cluster_read(options):
        items, cluster = _read_with_cluster(files, options)
    else:
        items, cluster = lint_files.read(files, options["namespace"] or reading.DEFAULT_NAMESPACE), None
    findings = linter.lint(items, cluster, files_only=bool(files))
    # beside files, the objects of the cluster are context only
    checked_items = [item for item in items if not (files and item.origin.is_live)]
    report = LintReport(
        findings, object_count=len(checked_items), autoscaler_count=sum(map(is_autoscaler, checked_items))
    )
    click.echo(_report_text(report, output), nl=output == "text")
    ctx.exit(1 if findings else 0)


def _check_options(files: Sequence[str], options: _Options) -> None:
    """Raise UsageError if there is nothing to check, or flags exclude each other."""
    if not files and not _is_cluster_read(options):
        raise UsageError("nothing to check: give files or folders, '-' for standard input, or --live for a cluster")
    if options["all_namespaces"] and options["namespace"]:
        raise UsageError("--namespace and --all-namespaces exclude each other")


def _is_cluster_read(options: _Options) -> bool:
    """Whether the flags demand a cluster: `--live`, and each flag that has no meaning without one."""
    return bool(options["live"] or options["kubeconfig"] or options["context"] or options["all_namespaces"])


def _read_with_cluster(files: Sequence[str], options: _Options) -> tuple[list[Item], LintedCluster]:
    """The objects of the files, then those of the cluster that the files do not replace, and what it serves.

    Of the cluster the namespaces of the files are read, without files that of `-n` or of the context. Prints what could
    not be read to standard error. Raises UsageError.
    """
    from podscaler.cli.lint import cluster_reader  # the client takes a while to import
    from podscaler.kube.config import locate

    config = locate.find_config(options["kubeconfig"], options["context"])
    namespace = options["namespace"] or config.namespace
    file_items = lint_files.read(files, namespace)
    if options["all_namespaces"]:
        namespaces = cluster_reader.ALL_NAMESPACES
    elif files:  # all namespaces if no object of the files has one
        namespaces = sorted({item.namespace for item in file_items if item.namespace}) or cluster_reader.ALL_NAMESPACES
    else:
        namespaces = [namespace]
    snapshot = asyncio.run(cluster_reader.read_cluster(config, namespaces, file_items, SystemClock()))
    for note in snapshot.notes:
        click.echo(f"podscaler: {note}", err=True)
    file_keys = {item.key for item in file_items}
    return [*file_items, *(item for item in snapshot.items if item.key not in file_keys)], snapshot.cluster


def _report_text(report: LintReport, output: str) -> str:
    """The report in a form of `--output`."""
    if output == "text":
        return lint_output.text(report)
    if output == "sarif":
        return lint_sarif.log_text(report.findings)
    return lint_output.data(report, output)
