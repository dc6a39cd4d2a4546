"""Makes the CustomResourceDefinitions of podscaler's own kinds, which are in the group podscaler.dev.

`pod_autoscaler` and `metric_source` call `definition`. A new kind of ours: a module like these, which
`podscaler.cli.commands.crd` prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

GROUP = "podscaler.dev"
VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`; with `priority` 1 it is for `kubectl get -o wide`.

    Attributes:
        path: the JSON path of its values in an object.
    """

    name: str
    type: str
    path: str
    description: str
    priority: int = 0

    def as_json(self) -> dict[str, Any]:
        """The entry of additionalPrinterColumns."""
        column = {"name": self.name, "type": self.type, "jsonPath": self.path, "description": self.description}
        return column | ({"priority": self.priority} if self.priority else {})


@dataclass(frozen=True, slots=True)
class KindNames:
    """The names of a kind: `PodAutoscaler`, `podautoscalers`, `pa`, and a category for kubectl, such as `all`."""

    kind: str
    plural: str
    short: str
    category: str


def definition(names: KindNames, columns: Sequence[PrinterColumn], schema: dict[str, Any]) -> dict[str, Any]:
    """The definition as JSON-ready data, without a status: one version with the subresource `status`.

    Args:
        schema: the OpenAPI schema of an object.
    """
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.as_json() for column in columns],
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": names.kind,
                "listKind": f"{names.kind}List",
                "plural": names.plural,
                "singular": names.kind.lower(),
                "shortNames": [names.short],
                "categories": [names.category],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }
