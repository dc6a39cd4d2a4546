"""The query parameters of the API in OpenAPI form: `query_parameters(("pretty",))` has one Parameter object.

Called by `openapi_paths`. A parameter that the server begins to read: add it to `_PARAMETERS` and to the tuples of the
operations that have it.

Source: the golden OpenAPI documents of autoscaling v1 and v2. Differs: descriptions are our own words.
"""

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

_PARAMETERS: dict[str, tuple[str, str]] = {  # name -> (JSON type, description)
    "allowWatchBookmarks": ("boolean", "Send BOOKMARK events with the resource version that a watch has reached."),
    "command": ("string", "The program to run and its arguments, one for each `command`; no shell reads them."),
    "container": ("string", "The container that is meant; needed where the pod has more than one."),
    "continue": ("string", "The token of the list before, to get its next part."),
    "dryRun": ("string", "`All`: go through everything except storing."),
    "fieldManager": ("string", "The name under which the changed fields are to be owned."),
    "fieldSelector": ("string", "Only objects whose fields have these values (`metadata.name=web`)."),
    "fieldValidation": (
        "string",
        "What becomes of unknown and duplicate fields: `Strict` refuses, `Warn` adds a warning, `Ignore` drops them.",
    ),
    "follow": ("boolean", "Go on as the log grows."),
    "force": ("boolean", "Take fields over from other managers; for server-side apply only."),
    "gracePeriodSeconds": ("integer", "Seconds until the object is deleted for good; 0 is at once."),
    "ignoreStoreReadErrorWithClusterBreakingPotential": ("boolean", "Also delete what cannot be read."),
    "labelSelector": ("string", "Only objects whose labels fit (`app=web,tier!=db`)."),
    "limit": ("integer", "The most objects of one response; `continue` gets the rest."),
    "limitBytes": ("integer", "Bytes of the log at most."),
    "metricLabelSelector": ("string", "Only values of metrics whose labels fit."),
    "orphanDependents": ("boolean", "Outdated: see propagationPolicy."),
    "ports": ("integer", "The ports to forward, over WebSockets."),
    "pretty": ("string", "`true`: indent the response."),
    "previous": ("boolean", "The log of the container's previous run."),
    "propagationPolicy": ("string", "What becomes of dependents: `Orphan`, `Background` or `Foreground`."),
    "resourceVersion": ("string", "How recent the response must be, or where a watch begins."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant: `Exact` or `NotOlderThan`."),
    "sendInitialEvents": ("boolean", "Begin a watch with an event for each object that there is."),
    "shardSelector": ("string", "Only objects of a part of the key space."),
    "sinceSeconds": ("integer", "Only lines of the last so many seconds."),
    "sinceTime": ("string", "Only lines since this time."),
    "stderr": ("boolean", "Send what the program writes to its standard error."),
    "stdin": ("boolean", "Give the program what is sent as its standard input."),
    "stdout": ("boolean", "Send what the program writes to its standard output."),
    "tailLines": ("integer", "Only so many lines from the end."),
    "timeoutSeconds": ("integer", "Seconds after which a list or watch ends."),
    "timestamps": ("boolean", "Begin each line with its time."),
    "tty": ("boolean", "Run the program in a terminal."),
    "watch": ("boolean", "Stream changes instead of a list."),
}
LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
DELETE = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
WRITE = ("dryRun", "fieldManager", "fieldValidation")
DELETE_COLLECTION = tuple(sorted({*LIST, *DELETE} - {"allowWatchBookmarks", "watch"}))
ATTACH = ("container", "stderr", "stdin", "stdout", "tty")
EXEC = ("command", *ATTACH)
METRIC_VALUES = ("labelSelector", "metricLabelSelector", "pretty")
PORT_FORWARD = ("ports",)
LOG = (
    "container",
    "follow",
    "limitBytes",
    "pretty",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "timestamps",
)


def query_parameters(names: Iterable[str]) -> list[Json]:
    """The parameters of those names, in that order. Raises KeyError for a name without an entry."""
    return [_parameter(name) for name in names]


def _parameter(name: str) -> Json:
    json_type, description = _PARAMETERS[name]
    return {"name": name, "in": "query", "description": description, "schema": {"type": json_type, "uniqueItems": True}}
