"""OpenAPI v3 documents of the metrics APIs, whose values are asked for and stored nowhere.

Called by the API server where it serves custom.metrics.k8s.io and external.metrics.k8s.io.

Source: the paths of the two APIs, as their clients ask. Differs: descriptions are our own words.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from podscaler.api.openapi import openapi

_PATHS = {
    "custom.metrics.k8s.io": {
        "namespaces/{namespace}/metrics/{name}": ("NamespaceMetric", "read a metric of a namespace"),
        "namespaces/{namespace}/{resource}/{name}/{subresource}": (
            "NamespacedMetric",
            "read a metric of an object in a namespace, or of all of them (`*`)",
        ),
        "{resource}/{name}/{subresource}": ("Metric", "read a metric of an object that is in no namespace"),
    },
    "external.metrics.k8s.io": {
        "namespaces/{namespace}/{resource}": ("NamespacedMetric", "read a metric of something outside of the cluster"),
    },
}


def documents(
    versions: Mapping[str, Sequence[str]], list_kinds: Mapping[str, str]
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Functions that make the documents, by the path under `/openapi/v3/`.

    Args:
        versions: the versions of each group that is served.
        list_kinds: the kind of the lists with which each of them answers.

    Raises:
        KeyError: for a group that is none of the two.
    """
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for group, served in versions.items():
        found[f"apis/{group}"] = openapi.of_group(group)
        for version in served:
            make = partial(openapi.of_values, group, version, _PATHS[group], list_kinds[group])
            found[f"apis/{group}/{version}"] = make
    return found
