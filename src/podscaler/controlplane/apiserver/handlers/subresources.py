"""Subresources that only one kind has, apart from logs: binding a pod to a node, evicting it, finalizing a namespace.

Called by `app`.
"""

from dataclasses import replace

from podscaler.api.machinery import field
from podscaler.api.machinery import names as name_rules
from podscaler.api.resource import api_errors as object_refusals
from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.apiserver.handlers import writes
from podscaler.controlplane.apiserver.http import (
    bodies,
    field_manager,
    http_errors,
    names,
    queries,
    rendering,
    responses,
)
from podscaler.controlplane.apiserver.http.bodies import BodyKind
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.registry import evictions
from podscaler.controlplane.storage.options import Preconditions, UpdateOptions

BINDING = BodyKind("v1", "Binding", "core/v1.Binding")
EVICTION = BodyKind("policy/v1", "Eviction", "policy/v1.Eviction")
OLD_EVICTION = replace(EVICTION, api_version="policy/v1beta1")
"""What older clients send to the same path, which is taken as well."""
CREATED: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Bind a pod (of the path, or of the body's name) to the node that the body names.

    Raises:
        StatusError: 400, 404, 409 (bound already), 413, 415, 500 for a target that is none.
    """
    options = queries.write_options(call.query, "CreateOptions")
    body = await bodies.read(call.request)
    validation = options.field_validation
    binding = bodies.decode(body, call.content_type, BINDING, plane.kinds, validation=validation).obj
    names.settle_namespace(binding, call.path.namespace)
    name = call.path.name or binding["metadata"].get("name", "")
    if binding["metadata"].get("name", "") != name:
        raise http_errors.bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    _check_target(target)
    if not name:
        raise http_errors.bad_request("Name parameter required.")
    node, resource = target["name"], plane.objects.resource("pods")

    def change(pod: Object) -> Object:
        if pod["spec"].get("nodeName"):
            why = f"pod {name} is already assigned to node {pod['spec']['nodeName']!r}".replace("'", '"')
            raise object_refusals.subresource_conflict(resource, "binding", name, why)
        pod["spec"]["nodeName"] = node
        for told in ("annotations", "labels"):
            if binding["metadata"].get(told):
                pod["metadata"][told] = {**(pod["metadata"].get(told) or {}), **binding["metadata"][told]}
        _tell_scheduled(pod, rfc3339(plane.clock.now_ns()))
        return pod

    wanted = writes.preconditions_of(binding) if call.path.name else Preconditions()  # the old path looks at none
    update = UpdateOptions("binding", wanted, dry_run=options.dry_run, author=None)
    await plane.objects.update("pods", call.path.namespace, name, change, options=update)
    return await responses.of(CREATED, call.form, status=201)


def _check_target(target: Object) -> None:
    """Raise StatusError 500, as upstream does, for what is no node."""
    kind, name = target.get("kind", ""), target.get("name", "")
    faults = []
    if kind not in ("", "Node"):
        faults.append(field.not_supported("target.kind", kind, ("Node", "<empty>")))
    if not name:
        faults.append(field.required("target.name"))
    texts = name_rules.dns_subdomain_faults(name) if name else []
    faults += [field.invalid("target.name", name, text) for text in texts]
    if faults:
        told = [str(fault) for fault in faults]
        raise object_refusals.unnamed_failure(told[0] if len(told) == 1 else f"[{', '.join(told)}]")


def _tell_scheduled(pod: Object, now: str) -> None:
    """Put the condition of a pod that has its node into its status, in place."""
    status = pod.setdefault("status", {})
    others = [each for each in status.get("conditions") or [] if each.get("type") != "PodScheduled"]
    told = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, told]


async def evict(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Delete the pod of the path, unless a PodDisruptionBudget forbids it.

    Raises:
        StatusError: 400, 403, 404, 409, 413, 415, 422, 429, 500.
    """
    path = call.path
    options = queries.write_options(call.query, "CreateOptions")
    body = await bodies.read(call.request)
    validation = options.field_validation
    kinds = {**plane.kinds, (OLD_EVICTION.api_version, OLD_EVICTION.kind): OLD_EVICTION}
    received = bodies.decode(body, call.content_type, EVICTION, kinds, validation=validation)
    if received.kind != OLD_EVICTION:
        bodies.check_version(received, EVICTION)
    eviction = received.obj
    names.settle_namespace(eviction, path.namespace)
    if eviction["metadata"].get("name", "") != path.name:
        raise http_errors.bad_request("name in URL does not match name in Eviction object")
    asked = queries.delete_options(queries.EMPTY, eviction.get("deleteOptions") or {})
    asked = replace(asked, dry_run=asked.dry_run or options.dry_run)
    now_ns = plane.clock.now_ns()
    await evictions.evict(plane.objects, path.namespace, path.name, options=asked, now_ns=now_ns)
    return await responses.of(CREATED, call.form, status=201)


async def finalize(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Replace the finalizers in a namespace's spec.

    Raises:
        StatusError: 400, 404, 409, 413, 415, 422.
    """
    path = call.path
    options = queries.write_options(call.query, "UpdateOptions")
    received = await writes.receive(plane, call, options)
    names.settle_namespace(received.obj, "")
    names.check_name(received.obj, path.name)
    wanted = writes.to_storage(call.served.version, received.obj)
    update = UpdateOptions(
        "finalize", writes.preconditions_of(wanted), options.dry_run, field_manager.of(call, options)
    )

    def change(stored: Object) -> Object:
        stored["spec"] = wanted.get("spec") or {}
        stored["metadata"]["resourceVersion"] = wanted["metadata"].get("resourceVersion", "")
        return stored

    entry = await plane.objects.update(call.key, "", path.name, change, options=update)
    return await rendering.one(plane, call, entry)
