"""ReplicationControllers, as the ReplicaSet controller keeps them: the same rules, with a plain map as selector.

`controller_manager.Controllers` makes a `replicaset.ReplicaSets` of this species.

Source: documentation of ReplicationController; upstream runs its ReplicaSet controller on them in the same way.
"""

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.apps.replicaset import Species


def selector_of(controller: Object) -> Selector:
    """What `spec.selector` selects: the pods with all of its labels; it is never empty."""
    return selectors.from_labels(controller["spec"].get("selector") or {})


SPECIES = Species(
    name="replication-controller",
    resource="replicationcontrollers",
    kind="ReplicationController",
    selector=selector_of,
    counts_terminating=False,
)
