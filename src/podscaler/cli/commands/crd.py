"""`podscaler crd`: the definition of PodAutoscaler, for `kubectl apply -f -`."""

import click

from podscaler.api.kinds.autoscaling import pod_autoscaler
from podscaler.api.text import yaml_output


@click.command(epilog="Example: podscaler crd | kubectl apply -f -")
def command() -> None:
    """The CustomResourceDefinition of PodAutoscaler, as YAML."""
    click.echo(yaml_output.write(pod_autoscaler.definition(), sort_keys=False).decode(), nl=False)
