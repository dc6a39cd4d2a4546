"""Serves the scale subresource of custom resources: reads, writes and validates replicas and selector by JSON path.

    mapping({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}).replicas({"spec": {"size": 3}})
    3

Called by `records`. `scale` arguments are a version's `subresources.scale`, as in the example. A new path in it:
`mapping`, and its errors in `spec_errors` or `status_errors`.

Source: docs/spec/api.md 5 (Scale subresource); the API documentation of CustomResourceSubresourceScale;
tests/conformance/golden/scale.jsonl.
"""

from typing import Any

from podscaler.api.crd import constraints
from podscaler.api.machinery import field, numbers
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource.resources import Object, ScaleMapping
from podscaler.api.text import json_text
from podscaler.base.errors import StatusError

_GO_TYPES = {
    "boolean": "bool",
    "integer": "int64",
    "number": "float64",
    "string": "string",
    "array": "[]interface {}",
    "object": "map[string]interface {}",
    "null": "<nil>",
}


class _AccessError(ValueError):
    """The value at a path has another type; str() is kube-apiserver's message."""


def mapping(scale: Object) -> ScaleMapping:
    """How objects map to autoscaling/v1 Scale; its functions raise StatusError 500 for values of another type."""
    spec_path, status_path = scale["specReplicasPath"], scale["statusReplicasPath"]
    selector_path = scale.get("labelSelectorPath") or ""

    def replicas(obj: Object) -> int | None:
        replicas_value = _read_value(obj, spec_path, "int64")
        return None if replicas_value is None else numbers.wrap32(replicas_value)

    def status_replicas(obj: Object) -> int:
        return numbers.wrap32(_read_value(obj, status_path, "int64") or 0)

    def selector(obj: Object) -> str:
        return (_read_value(obj, selector_path, "string") or "") if selector_path else ""

    def set_replicas(obj: Object, count: int) -> None:
        """Set the count at the path of the replicas, and make the objects above it if they are absent."""
        *parent_names, last_name = _path_names(spec_path)
        parent = obj
        for name in parent_names:
            parent = parent.setdefault(name, {})
        parent[last_name] = count

    return ScaleMapping(replicas, status_replicas, selector, set_replicas, custom_path=spec_path)


def spec_errors(obj: Object, scale: Object) -> list[FieldError]:
    """The field errors of the desired replicas."""
    return _replica_errors(obj, scale["specReplicasPath"])


def status_errors(obj: Object, scale: Object) -> list[FieldError]:
    """The field errors of the observed replicas and the selector."""
    errors = _replica_errors(obj, scale["statusReplicasPath"])
    path = scale.get("labelSelectorPath") or ""
    if path:
        try:
            _typed_value(obj, path, "string")
        except _AccessError as error:
            errors.append(field.invalid(path, "", str(error)))
    return errors


def _replica_errors(obj: Object, path: str) -> list[FieldError]:
    """Errors of the count at a path of the scale subresource."""
    try:
        replica_count = _typed_value(obj, path, "int64") or 0
    except _AccessError as error:
        return [field.invalid(path, 0, str(error))]
    if replica_count < 0:
        return [field.invalid(path, replica_count, "should be a non-negative integer")]
    if replica_count > numbers.INT32_MAX:
        return [field.invalid(path, replica_count, f"should be less than or equal to {numbers.INT32_MAX}")]
    return []


def _path_names(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _read_value(obj: Object, path: str, expected_type: str) -> Any:
    """The value at `path`, None without one. Raises StatusError 500 if it is not of the Go type `expected_type`."""
    try:
        return _typed_value(obj, path, expected_type)
    except _AccessError as error:
        raise StatusError(str(error), code=500) from None


def _typed_value(obj: Any, path: str, expected_type: str) -> Any:
    """The value at a path, None if there is none. Raises _AccessError for another type (also above the path's end)."""
    path_names = _path_names(path)
    value = obj
    for index, name in enumerate(path_names):
        if not isinstance(value, dict):
            raise _AccessError(_access_message(path_names[: index + 1], value, "map[string]interface{}"))
        if name not in value:
            return None
        value = value[name]
        if value is None and index < len(path_names) - 1:  # a null above the end counts as absent, one at it does not
            return None
    if _go_type(value) != expected_type:
        raise _AccessError(_access_message(path_names, value, expected_type))
    return value


def _access_message(path_names: list[str], value: Any, expected_type: str) -> str:
    dotted_path = "." + ".".join(path_names)
    printed_value = value if isinstance(value, str) else json_text.encode(value).decode()
    return f"{dotted_path} accessor error: {printed_value} is of the type {_go_type(value)}, expected {expected_type}"


def _go_type(value: Any) -> str:
    json_type, _ = constraints.type_of(value)
    return _GO_TYPES[json_type]
