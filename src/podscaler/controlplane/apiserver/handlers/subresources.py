"""Handles the subresources `binding` and `eviction` of pods, and `finalize` of namespaces.

`dispatch` calls it: POST pods/web-1/binding assigns a pod to a node, POST pods/web-1/eviction deletes it unless a
PodDisruptionBudget forbids that, PUT namespaces/a/finalize removes finalizers in spec.finalizers. The objects are
changed inside the store's read-modify-write (`registry.objects`). `dispatch` says where a new subresource goes.
"""

from dataclasses import replace

from podscaler.api.machinery import field
from podscaler.api.machinery import names as name_rules
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.controlplane.apiserver.handlers import writes
from podscaler.controlplane.apiserver.http import (
    http_errors,
    name_checks,
    object_responses,
    query_options,
    request_bodies,
    responses,
)
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.auth import authorizer
from podscaler.controlplane.registry import evictions, object_preparation
from podscaler.controlplane.storage.options import Preconditions, UpdateOptions

BINDING = BodyKind("v1", "Binding", "core/v1.Binding")
EVICTION = BodyKind("policy/v1", "Eviction", "policy/v1.Eviction")
OLD_EVICTION = replace(EVICTION, api_version="policy/v1beta1")
"""The Eviction of older clients, which is accepted at the same path."""
CREATED_STATUS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
"""The Status that responds to a Binding or Eviction."""


async def bind(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Assign a pod (of the path, or of the body for the old path `bindings`) to the node that the body names.

    Raises StatusError 400, 404, 408, 409 (already assigned), 413, 415, 422, 500 for an invalid target.
    """
    options = query_options.write_options(request.query, "CreateOptions")
    body = await request_bodies.read(request.http)
    validation = options.field_validation
    binding = request_bodies.decode(body, request.content_type, BINDING, server.kinds, validation=validation).obj
    object_preparation.set_namespace(binding, request.path.namespace)
    pod_name = request.path.name or binding["metadata"].get("name", "")
    if binding["metadata"].get("name", "") != pod_name:
        raise http_errors.bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    _check_target(target)
    if not pod_name:
        raise http_errors.bad_request("Name parameter required.")
    node_name, resource = target["name"], server.objects.resource("pods")

    def change(pod: Object) -> Object:
        if assigned_node := pod["spec"].get("nodeName"):
            message = f'pod {pod_name} is already assigned to node "{assigned_node}"'
            raise api_errors.subresource_conflict(resource, "binding", pod_name, message)
        pod["spec"]["nodeName"] = node_name
        for field_name in ("annotations", "labels"):
            added_entries = binding["metadata"].get(field_name)
            if added_entries:
                pod["metadata"][field_name] = {**(pod["metadata"].get(field_name) or {}), **added_entries}
        _set_scheduled(pod, rfc3339(server.clock.now_ns()))
        return pod

    preconditions = writes.preconditions_of(binding) if request.path.name else Preconditions()  # the old path has none
    update = UpdateOptions("binding", preconditions, dry_run=options.dry_run, author=None)
    await server.objects.update("pods", request.path.namespace, pod_name, change, options=update)
    return await responses.encode_object(CREATED_STATUS, request.form, status=201)


def _check_target(target: Object) -> None:
    """Check the target of a Binding. Raises StatusError 500, as kube-apiserver, unless it is a node."""
    kind, name = target.get("kind", ""), target.get("name", "")
    errors = []
    if kind not in ("", "Node"):
        errors.append(field.not_supported("target.kind", kind, ("Node", "<empty>")))
    if not name:
        errors.append(field.required("target.name"))
    name_problems = name_rules.dns_subdomain_errors(name) if name else []
    errors += [field.invalid("target.name", name, problem) for problem in name_problems]
    if errors:
        raise api_errors.error_without_reason(authorizer.join_errors(list(map(str, errors))))


def _set_scheduled(pod: Object, now: str) -> None:
    """Set the condition PodScheduled in a pod's status, in place, with the time `now` (RFC 3339)."""
    status = pod.setdefault("status", {})
    others = [condition for condition in status.get("conditions") or [] if condition.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, scheduled]


async def evict(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Delete the pod of the path, unless a PodDisruptionBudget forbids it (429).

    Raises StatusError 400, 403, 404, 408, 409, 413, 415, 422, 429, 500.
    """
    path = request.path
    options = query_options.write_options(request.query, "CreateOptions")
    body = await request_bodies.read(request.http)
    validation = options.field_validation
    kinds = {**server.kinds, (OLD_EVICTION.api_version, OLD_EVICTION.kind): OLD_EVICTION}
    received = request_bodies.decode(body, request.content_type, EVICTION, kinds, validation=validation)
    if received.kind != OLD_EVICTION:
        request_bodies.check_version(received, EVICTION)
    eviction = received.obj
    object_preparation.set_namespace(eviction, path.namespace)
    if eviction["metadata"].get("name", "") != path.name:
        raise http_errors.bad_request("name in URL does not match name in Eviction object")
    delete_options = query_options.delete_options(query_options.EMPTY_QUERY, eviction.get("deleteOptions") or {})
    delete_options = replace(delete_options, dry_run=delete_options.dry_run or options.dry_run)
    now_ns = server.clock.now_ns()
    await evictions.evict(server.objects, path.namespace, path.name, options=delete_options, now_ns=now_ns)
    return await responses.encode_object(CREATED_STATUS, request.form, status=201)


async def finalize(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Replace the spec, with its finalizers, of a namespace.

    Raises StatusError 400, 404, 406, 408, 409, 413, 415, 422.
    """
    path = request.path
    options = query_options.write_options(request.query, "UpdateOptions")
    received = await request.receive(request.kind, server.kinds, options)
    object_preparation.set_namespace(received.obj, "")
    name_checks.check_name(received.obj, path.name)
    new_namespace = writes.to_storage(request.served.version, received.obj)
    update = UpdateOptions("finalize", writes.preconditions_of(new_namespace), options.dry_run, request.author(options))

    def change(stored: Object) -> Object:
        stored["spec"] = new_namespace.get("spec") or {}
        stored["metadata"]["resourceVersion"] = new_namespace["metadata"].get("resourceVersion", "")
        return stored

    entry = await server.objects.update(request.resource_key, "", path.name, change, options=update)
    return await object_responses.object_response(server, request, entry)
