"""Texts of scenario files for the tests: a Deployment `web` with an autoscaler over CPU, and a scenario beside them."""

from pathlib import Path

from podscaler.simulation.files import scenario_file
from podscaler.simulation.files.scenario_file import ScenarioFile

HEAD = "apiVersion: podscaler.dev/v1alpha1\nkind: Scenario\n"
DEPLOYMENT = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: app, image: web, resources: {requests: {cpu: 200m}, limits: {cpu: 500m}}}
"""
AUTOSCALER = """\
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  targetCPUUtilizationPercentage: 50
"""
CPU = "duration: 10m\nworkloads: {web: {load: {cpu: 300m}}}\n"


def read(
    folder: Path, body: str = CPU, manifests: str = DEPLOYMENT + AUTOSCALER, *, seed: int | None = None
) -> ScenarioFile:
    """The scenario with that body, read from `scenario.yaml` in the folder."""
    path = folder / "scenario.yaml"
    path.write_text(HEAD + body + manifests)
    return scenario_file.read(path, seed=seed)


def with_load(load: str, duration: str = "10m") -> str:
    """The body of a scenario with this CPU load of `web`, in YAML's flow style."""
    return f"duration: {duration}\nworkloads: {{web: {{load: {{cpu: {load}}}}}}}\n"
