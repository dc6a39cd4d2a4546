"""What a request does to objects, as pure functions over the catalog: decoding, defaulting, validation, conversion.

Called by `test_golden_catalog`. It is the order of steps of the API server without HTTP, store and clocks, for the
requests of which the golden captures consist mostly: create, replace, merge patch, get, list, table, status, scale.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from podscaler.api.kinds import catalog
from podscaler.api.machinery import field as fields
from podscaler.api.resource import metadata, resources, scale_mappings, semantics
from podscaler.api.schema import canonical, decoding
from podscaler.base.errors import StatusError

Object = dict[str, Any]

CREATED = "2026-01-01T00:00:00Z"
NOW_NS = 1_767_225_600_000_000_000 + 90_000_000_000
_GROUPS = {(each.group, each.plural): each for each in catalog.RESOURCES}


@dataclass(frozen=True)
class Target:
    """What a path names."""

    resource: resources.Resource
    version: resources.Version
    api_version: str
    namespace: str
    name: str
    subresource: str


def _find_target(path: str) -> Target | None:
    """The target of a request path, None where the catalog has no such kind."""
    parts = path.strip("/").split("/")
    if len(parts) < 3:
        return None
    group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
    version, rest = rest[0], rest[1:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = _GROUPS.get((group, rest[0] if rest else ""))
    if resource is None:
        return None
    found = [each for each in resource.versions if each.version == version]
    if not found:
        return None
    api_version = f"{group}/{version}" if group else version
    name, sub = (rest[1] if len(rest) > 1 else ""), (rest[2] if len(rest) > 2 else "")
    return Target(resource, found[0], api_version, namespace, name, sub)


_QUERIES = {"pretty"}
_MERGE_PATCH = "application/merge-patch+json"


def supports(request: Object) -> bool:
    """Whether the request is about the catalog alone: a kind of it, JSON, no query that asks for more."""
    target = _find_target(request["path"])
    if target is None or set(request.get("query") or {}) - _QUERIES or request.get("watch") or "user" in request:
        return False
    headers = request.get("headers") or {}
    if any(word in headers.get("Accept", "") for word in ("Partial", "yaml", "protobuf", "v1beta1", "xml", "image")):
        return False
    return _is_supported_method(request, target, headers)


def _is_supported_method(request: Object, target: Target, headers: dict[str, str]) -> bool:
    method, is_table = request["method"], "as=Table" in headers.get("Accept", "")
    if method == "GET":
        return is_table or (bool(target.name) and target.subresource in ("", "status", "scale"))
    if "body" not in request or "json" not in headers.get("Content-Type", ""):
        return False
    if target.subresource == "scale":
        return False
    return method in {"POST", "PUT"} or (method == "PATCH" and headers["Content-Type"] == _MERGE_PATCH)


@dataclass
class Pipeline:
    """Objects in their storage version, and one resourceVersion."""

    stored: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    revision: int = 1000

    def handle(self, request: Object) -> tuple[int, Object]:
        """The answer to a supported request: status and body."""
        target = _find_target(request["path"])
        assert target is not None
        try:
            return self._answer(target, request)
        except StatusError as refused:
            return refused.code, refused.to_status()

    def _answer(self, target: Target, request: Object) -> tuple[int, Object]:
        method = request["method"]
        if method == "GET":
            return 200, self._read(target, is_table="as=Table" in request["headers"]["Accept"])
        if method == "POST":
            return 201, self._create(target, request["body"])
        if method == "PUT":
            return 200, self._update(target, request["body"])
        old = self._get(target)
        return 200, self._update(target, _merged(self._shown(target, old), request["body"]))

    def _get(self, target: Target) -> Object:
        key = (target.resource.storage_key, target.namespace, target.name)
        if key not in self.stored:
            raise StatusError("not found", code=404, reason="NotFound")
        return _copied(self.stored[key])

    def _read(self, target: Target, *, is_table: bool) -> Object:
        if not target.name:
            place = (target.resource.storage_key, target.namespace)
            return _table(
                target.resource.printer, [self.stored[key] for key in sorted(self.stored) if key[:2] == place]
            )
        obj = self._get(target)
        if target.subresource == "scale":
            scale = _scale(target.resource, obj)
            return _table(scale_mappings.PRINTER, [scale]) if is_table else scale
        return _table(target.resource.printer, [obj]) if is_table else self._shown(target, obj)

    def _shown(self, target: Target, obj: Object) -> Object:
        return canonical.canonical(target.version.from_storage(_copied(obj)), target.version.message)

    def _decoded(self, target: Target, value: Any) -> Object:
        obj = decoding.decode_value(value, target.version.message).obj
        target.version.default(obj)
        obj["apiVersion"], obj["kind"] = target.api_version, target.resource.kind
        return target.version.to_storage(obj)

    def _create(self, target: Target, body: Any) -> Object:
        resource, strategy = target.resource, target.resource.strategy
        new = self._decoded(target, body)
        meta = new.setdefault("metadata", {})
        if resource.namespaced:
            meta["namespace"] = target.namespace
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = meta["generateName"][:58] + "bcdfg"
        strategy.prepare_create(new)
        self._refuse(resource, new, metadata.validate_metadata(resource, new, None) + strategy.validate(new, None))
        meta |= {"uid": "00000000-0000-0000-0000-000000000001", "creationTimestamp": CREATED}
        if strategy.has_generation:
            meta["generation"] = 1
        else:
            meta.pop("generation", None)
        return self._keep(target, new)

    def _update(self, target: Target, body: Any) -> Object:
        old = self._get(target)
        resource, strategy = target.resource, target.resource.strategy
        new = self._decoded(target, body)
        meta, old_meta = new.setdefault("metadata", {}), old["metadata"]
        for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            meta.pop(name, None)
            if name in old_meta:
                meta[name] = old_meta[name]
        for name in ("namespace", "uid"):
            if name in old_meta:
                meta.setdefault(name, old_meta[name])
        meta.pop("resourceVersion", None)
        if target.subresource == "status":
            strategy.prepare_status_update(new, old)
            faults = strategy.validate_status(new, old)
        else:
            strategy.prepare_update(new, old)
            faults = strategy.validate(new, old)
        self._refuse(resource, new, metadata.validate_metadata(resource, new, old) + faults)
        if strategy.has_generation and not semantics.same(strategy.spec_of(new), strategy.spec_of(old)):
            meta["generation"] = old_meta["generation"] + 1
        return self._keep(target, new)

    def _refuse(self, resource: resources.Resource, new: Object, faults: list[fields.FieldError]) -> None:
        if faults:
            group = catalog.get(resource.storage_key).group
            name = new["metadata"].get("name", "")
            raise fields.invalid_object(group=group, kind=resource.kind, name=name, errors=faults)

    def _keep(self, target: Target, new: Object) -> Object:
        resource = catalog.get(target.resource.storage_key)
        storage = next(each for each in resource.versions if each.version == resource.storage_version)
        self.revision += 1
        new["metadata"]["resourceVersion"] = str(self.revision)
        kept = canonical.canonical(new, storage.message)
        self.stored[resource.key, target.namespace, new["metadata"]["name"]] = _copied(kept)
        return self._shown(target, kept)


def _copied(obj: Object) -> Object:
    return json.loads(json.dumps(obj))


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), part)
    return merged


def _scale(resource: resources.Resource, obj: Object) -> Object:
    mapping = resource.scale
    assert mapping is not None
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    meta = {key: value for key, value in obj["metadata"].items() if key in kept}
    spec = {"replicas": mapping.replicas(obj)} if mapping.replicas(obj) else {}
    status: Object = {"replicas": mapping.status_replicas(obj)}
    if selector := mapping.selector(obj):
        status["selector"] = selector
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def _table(printer: resources.Printer, objects: list[Object]) -> Object:
    columns = [{"name": c.name, "type": c.type, "format": c.format, "priority": c.priority} for c in printer.columns]
    rows = [{"cells": printer.row(_copied(obj), NOW_NS)} for obj in objects]
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": columns, "rows": rows}
