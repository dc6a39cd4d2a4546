"""`podscaler explain`: why an autoscaler has, or had, this many replicas, in one sentence and then in numbers.

`podscaler.cli.main` registers the command. It chooses the source (a cluster, a recording, standard input), calls
`explain_cluster` or `explain_recording`, and prints. A new part of the output goes into `_result_text` and
`_result_data`.
"""

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import click
import msgspec
import yaml
from click.core import ParameterSource

from podscaler.base.clock import SystemClock
from podscaler.base.errors import UsageError
from podscaler.cli.commands import replay as recordings
from podscaler.cli.explain import explain_recording, explain_request
from podscaler.cli.explain.explain_request import ExplainRequest, ExplainResult
from podscaler.cli.options import lease_options
from podscaler.cli.options import settings as flags
from podscaler.cli.options.flags import kubeconfig_options
from podscaler.controller.options.settings import ControllerSettings
from podscaler.explain import comparison, explained, what_if

if TYPE_CHECKING:
    from podscaler.cli.explain.explain_cluster import Summary

STANDARD_INPUT = "-"
"""The NAME or FILE that means standard input."""

EXAMPLE = """\b
Examples:
  podscaler explain web -n shop
  podscaler explain podautoscaler/web -n shop
  podscaler explain -A
  podscaler explain web -n shop --what-if 'minReplicas=3,metrics[0].target=60%'
  podscaler explain web --recording web.recording.jsonl.gz --at 2026-03-03T10:15:00Z
  podscaler replay web.recording.jsonl.gz --trace | tail -n 1 | podscaler explain -
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", metavar="[[KIND/]NAME]", required=False)
@click.option("-A", "--all-namespaces", is_flag=True, help="one line for each autoscaler of the cluster")
@click.option("-n", "--namespace", metavar="NAMESPACE", help="of the autoscaler; default: the context's, or any")
@click.option(
    "--at", metavar="TIME", help="explain the last sync until then, as 2026-03-03T10:15:00Z (recordings only)"
)
@click.option(
    "--recording", metavar="FILE", help="explain a recorded sync, the last one by default ('-': standard input)"
)
@click.option("--what-if", "what_if_text", metavar="A=B,...", help="decide again with another spec: 'minReplicas=3'")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
@kubeconfig_options
@flags.decision_options
@lease_options.lease_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    name: str | None,
    namespace: str | None,
    at: str | None,
    what_if_text: str | None,
    output: str,
    **options: Any,
) -> None:
    """Why an autoscaler has, or had, this many replicas.

    NAME (or NAMESPACE/NAME) is an autoscaler of the cluster, or of the recording, which needs no NAME where it holds
    one only. hpa/NAME and podautoscaler/NAME distinguish a HorizontalPodAutoscaler from a PodAutoscaler of that name.
    '-' reads standard input: a recording, one line of it, or decisions with a trace. The controller's flags are those
    with which a controller of the cluster is started; recordings have their own.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    recording, are_all_explained = options["recording"], options["all_namespaces"]
    if are_all_explained:
        _check_none_beside_all(name, namespace, at, recording, what_if_text)
    if name == STANDARD_INPUT and recording is None:
        name, recording = None, STANDARD_INPUT
    requested_name = explain_request.parse_name(name, namespace)
    request = ExplainRequest(
        name=requested_name.name,
        namespace=requested_name.namespace,
        kind=requested_name.kind,
        at_ns=None if at is None else explain_request.parse_time(at),
        assignments=() if what_if_text is None else what_if.parse(what_if_text),
    )
    if recording is not None:
        cluster_flags = ("kubeconfig", "context", lease_options.NAME_FLAG, lease_options.NAMESPACE_FLAG)
        _check_none_given(ctx, [*(option.name for option in flags.OPTIONS), *cluster_flags])
        explain_result = _explain_from_recording(recording, request)
    elif are_all_explained:
        summaries = _summarize_all(request, _Cluster(ctx, options))
        click.echo(_summaries_text(summaries, output), nl=output != "yaml")  # YAML has its own last line break
        return
    elif at is not None:
        raise UsageError("--at needs --recording: a cluster only shows the present")
    else:
        explain_result = _explain_from_cluster(request, _Cluster(ctx, options))
    output_text = _result_text(explain_result) if output == "text" else _result_data(explain_result, output)
    click.echo(output_text, nl=output != "yaml")


def _check_none_given(ctx: click.Context, names: list[str]) -> None:
    """Raise UsageError if the command line has one of these flags, which have no meaning for a recording."""
    for name in names:
        if _is_given(ctx, name):
            raise UsageError(f"--{name} has no meaning for a recording, which has its own; --what-if changes flags")


def _is_given(ctx: click.Context, name: str) -> bool:
    """Whether the command line has the flag `--name`."""
    return ctx.get_parameter_source(name.replace("-", "_")) is ParameterSource.COMMANDLINE


def _explain_from_recording(recording: str, request: ExplainRequest) -> ExplainResult:
    """The explanation from a recording: a path, or STANDARD_INPUT for standard input."""
    origin = "standard input" if recording == STANDARD_INPUT else recording
    with recordings.open_input(recording) as source:
        return explain_recording.explain_sync(recordings.read_lines(source), request, origin=origin)


class _Cluster:
    """The connection that the flags name, and the assumed settings of its controller; not made for recordings."""

    def __init__(self, ctx: click.Context, options: dict[str, Any]) -> None:
        from podscaler.cli.explain import assumed_controller  # the client takes a while to import
        from podscaler.kube.config import locate

        settings = flags.parse_settings(options)
        self.config = locate.find_config(options["kubeconfig"], options["context"])
        self.clock = SystemClock()
        namespace = settings.history_namespace  # empty: the controller stores no histories
        history = (
            assumed_controller.StoredHistory(namespace, self.clock) if namespace else assumed_controller.NoHistory()
        )
        self.controller = assumed_controller.AssumedController(
            settings,
            history,
            lease_namespace=options["leader_elect_resource_namespace"],
            election=options["leader_elect_resource_name"],
            given_flags=_given_flags(ctx, settings),
        )


def _given_flags(ctx: click.Context, settings: ControllerSettings) -> dict[str, Any]:
    """The values of the flags of decisions that are on the command line, as recordings have them.

    Without the flags that say where the history is and which kinds are managed, as they do not change a decision.
    """
    flag_values = {"algorithm": settings.algorithm, "emulate": settings.emulate, **settings.flags}
    names = [
        option.name for option in flags.DECISION_OPTIONS if option.name not in ("history-namespace", "autoscaler-kinds")
    ]
    return {name: flag_values[name] for name in names if _is_given(ctx, name)}


def _explain_from_cluster(request: ExplainRequest, cluster: _Cluster) -> ExplainResult:
    """The explanation from the cluster. Raises UsageError, StatusError."""
    from podscaler.cli.explain import explain_cluster

    return asyncio.run(explain_cluster.explain_one(cluster.config, request, cluster.controller, cluster.clock))


def _summarize_all(request: ExplainRequest, cluster: _Cluster) -> "list[Summary]":
    """A sentence for each autoscaler of the cluster. Raises UsageError, StatusError."""
    from podscaler.cli.explain import explain_cluster

    return asyncio.run(explain_cluster.summarize_all(cluster.config, request, cluster.controller, cluster.clock))


def _check_none_beside_all(*excluded: str | None) -> None:
    """Raise UsageError if one of the flags and arguments that `-A` excludes is given, that is not None."""
    if any(argument is not None for argument in excluded):
        raise UsageError(
            "-A explains all autoscalers of a cluster: it goes with no NAME, -n, --at, --recording, --what-if"
        )


def _summaries_text(summaries: "list[Summary]", output: str) -> str:
    """One line for each autoscaler, after a line for each assumption; or all of it as data."""
    if output != "text":
        return _json_or_yaml([summary._asdict() for summary in summaries], output)
    assumptions = dict.fromkeys(summary.assumption for summary in summaries if summary.assumption)
    return "\n".join([*assumptions, *(summary.sentence for summary in summaries)] or ["there are no autoscalers"])


def _result_text(explain_result: ExplainResult) -> str:
    """The result as text, after the assumption if there is one: the explanation, or its comparison with the what-if."""
    if explain_result.comparison is None:
        section = explain_result.manager.section if explain_result.manager is not None else None
        section_lines = explained.section_lines([section] if section is not None else [])
        output_text = "\n".join([explained.text(explain_result.explanation), *section_lines])
    else:
        output_text = comparison.full_text(explain_result.comparison, explain_result.explanation)
    assumption = explain_result.settings.assumption if explain_result.settings is not None else ""
    return f"{assumption}\n{output_text}" if assumption else output_text


def _result_data(explain_result: ExplainResult, form: str) -> str:
    """The explanation as JSON or YAML, with `settings`, `lookedAfter` and `whatIf` where they are known."""
    fields = json.loads(msgspec.json.encode(explain_result.explanation))
    if explain_result.settings is not None:
        fields["settings"] = {"origin": explain_result.settings.origin, "isAssumed": explain_result.settings.is_assumed}
    if explain_result.manager is not None and explain_result.manager.section is not None:
        fields["lookedAfter"] = explain_result.manager.data
    if explain_result.comparison is not None:
        fields["whatIf"] = json.loads(msgspec.json.encode(explain_result.comparison))
    return _json_or_yaml(fields, form)


def _json_or_yaml(fields: Any, form: str) -> str:
    """JSON-ready fields as YAML or JSON."""
    if form == "yaml":
        return str(yaml.safe_dump(fields, sort_keys=False, allow_unicode=True))
    return json.dumps(fields, indent=2, ensure_ascii=False)
