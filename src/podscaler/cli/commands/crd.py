"""`podscaler crd`: the definitions of PodAutoscaler and MetricSource, for `kubectl apply -f -`.

`podscaler.cli.main` registers the command. A new custom resource: its module, with a function `definition`, in
`command`.
"""

import click

from podscaler.api.kinds.autoscaling import metric_source, pod_autoscaler
from podscaler.api.text import yaml_output


@click.command(epilog="Example: podscaler crd | kubectl apply -f -")
def command() -> None:
    """The CustomResourceDefinitions of PodAutoscaler and MetricSource, as YAML."""
    documents = [
        yaml_output.write(module.definition(), sort_keys=False).decode() for module in (pod_autoscaler, metric_source)
    ]
    click.echo("---\n".join(documents), nl=False)
