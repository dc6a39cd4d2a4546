"""Admits writes: by mutating webhooks in sequence, then policies, then validating webhooks at the same time.

`podscaler.cli.up.control_plane` sets it as the admission of `registry.objects`. Webhooks are not called for webhook
configurations themselves, and never for writes that no rule matches. A call that fails rejects the write, unless the
failurePolicy is `Ignore`.

Another step of admission goes into `WebhookAdmission.mutate` or `validate`, and into `selects`.

Source: kube-apiserver's mutating and validating dispatchers.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from podscaler.api.kinds.policy import webhookconfiguration
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.api.schema import schema
from podscaler.api.text.json_text import DecodeError
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import json_patch
from podscaler.controlplane.apiserver.http import request_bodies
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind
from podscaler.controlplane.apiserver.webhooks import admission_reviews, configurations, matching
from podscaler.controlplane.apiserver.webhooks.admission_policies import PolicyAdmission
from podscaler.controlplane.apiserver.webhooks.admission_reviews import InvalidReview, UndecodablePatch, WebhookVerdict
from podscaler.controlplane.apiserver.webhooks.configurations import Webhook
from podscaler.controlplane.apiserver.webhooks.matching import ServedVersion
from podscaler.controlplane.apiserver.webhooks.webhook_client import CallError, WebhookClient
from podscaler.controlplane.registry import acting_user, remote_admission
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.remote_admission import (
    ADMITTED_SUBRESOURCES,
    CONNECTED_SUBRESOURCES,
    AdmittedWrite,
    Operation,
)

_log = logging.getLogger(__name__)

_SCALE_MESSAGE = "autoscaling/v1.Scale"
"""The name of the type of a Scale in the schema."""


class WebhookAdmission:
    """Calls the webhooks of the stored configurations; implements `registry.remote_admission.AsyncAdmission`.

    Attributes:
        client: the connections to webhooks.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._index = configurations.watch_webhooks(objects)
        self._policies = PolicyAdmission(objects)
        self.client = WebhookClient(Registry(objects, "kube-apiserver"))

    def selects(self, resource: Resource, operation: Operation, subresource: str) -> bool:
        """Whether there are webhooks or policies at all for writes of such a kind, or connections to it."""
        index = self._index
        if not index.mutating and not index.validating and not self._policies.is_needed:
            return False
        admitted = CONNECTED_SUBRESOURCES if operation == "CONNECT" else ADMITTED_SUBRESOURCES
        return resource.group != webhookconfiguration.GROUP and subresource in admitted

    async def mutate(self, write: AdmittedWrite) -> Object | None:
        """The object after all mutating webhooks.

        Raises StatusError with the code of a webhook that rejects the write, 403 as `_verdict_and_version`, 500 for a
        failure.
        """
        reinvocable: set[tuple[str, int]] = set()  # the webhooks so far with reinvocationPolicy IfNeeded
        to_reinvoke: set[tuple[str, int]] = set()  # those after which another webhook changed the object
        for webhook in self._index.mutating:
            mutated = await self._call_mutating(webhook, write)
            if mutated is not None and mutated != write.new:
                write = replace(write, new=mutated)
                to_reinvoke |= reinvocable
            if webhook.source.get("reinvocationPolicy") == "IfNeeded":
                reinvocable.add(webhook.identity)
        for webhook in self._index.mutating:
            if webhook.identity in to_reinvoke:
                mutated = await self._call_mutating(webhook, write)
                write = write if mutated is None else replace(write, new=mutated)
        return write.new

    async def validate(self, write: AdmittedWrite) -> None:
        """Apply the admission policies, and call all validating webhooks. Raises as `mutate`, and as the policies."""
        if self._policies.is_needed:
            await self._policies.validate(write)
        calls = [self._call_validating(webhook, write) for webhook in self._index.validating]
        for outcome in await asyncio.gather(*calls, return_exceptions=True):  # the first error in calling order
            if isinstance(outcome, BaseException):
                raise outcome

    async def _call_mutating(self, webhook: Webhook, write: AdmittedWrite) -> Object | None:
        """The object after one webhook; None if it is not called or has no patch. Raises as `mutate`."""
        verdict_and_version = await self._verdict_and_version(webhook, write, is_mutating=True)
        if verdict_and_version is None:
            return None
        verdict, sent_version = verdict_and_version
        if not verdict.allowed:
            raise admission_reviews.rejection(webhook.name, verdict.status)
        if not verdict.patch or write.operation == "CONNECT":
            return None
        if write.new is None:
            problem = "attempted to modify the object, which is not supported for this operation"
            raise api_errors.internal_error(f'admission webhook "{webhook.name}" {problem}')
        return await self._objects.converted(lambda: _apply_patch(verdict.patch, write, sent_version))

    async def _call_validating(self, webhook: Webhook, write: AdmittedWrite) -> None:
        """Call one webhook if the write matches. Raises StatusError if it rejects the write or fails."""
        verdict_and_version = await self._verdict_and_version(webhook, write, is_mutating=False)
        if verdict_and_version is None:
            return
        verdict, _ = verdict_and_version
        if not verdict.allowed:
            raise admission_reviews.rejection(webhook.name, verdict.status)

    async def _verdict_and_version(
        self, webhook: Webhook, write: AdmittedWrite, *, is_mutating: bool
    ) -> tuple[WebhookVerdict, ServedVersion] | None:
        """The verdict of a webhook, and the version that it got; None if it is not called, or its failure is ignored.

        Raises StatusError 403 for match conditions that cannot be evaluated, 500 for a failed call.
        """
        if not matching.is_selected(webhook, write, self._objects):
            return None
        context = remote_admission.current()
        versions = matching.versions_of(self._objects, write, context.api_version)
        sent_version = matching.find_version(webhook, write, versions)
        if sent_version is None:
            return None
        requested_version, *_ = versions
        request = admission_reviews.request_of(write, sent_version, requested_version, acting_user.current())
        new, old = await self._objects.converted(
            lambda: [sent_version.converted(obj, write.subresource) for obj in (write.new, write.old)]
        )
        if webhook.source.get("matchConditions"):
            namespace = matching.find_namespace(write, self._objects)
            variables = {"object": new, "oldObject": old, "request": request, "namespaceObject": namespace}
            if not matching.meets_conditions(webhook, write, variables):
                return None
        review = admission_reviews.review_of(webhook, request, new, old)
        try:
            verdict = await self._call_webhook(webhook, review, is_mutating=is_mutating)
        except CallError as error:
            message = f'failed calling webhook "{webhook.name}": {error}'
            if not webhook.ignores_failures:
                raise api_errors.internal_error(message) from error
            _log.warning("%s; the failure is ignored", message)
            return None
        distinct_warnings = dict.fromkeys(verdict.warnings)
        context.warnings += [warning for warning in distinct_warnings if warning not in context.warnings]
        return verdict, sent_version

    async def _call_webhook(self, webhook: Webhook, review: Object, *, is_mutating: bool) -> WebhookVerdict:
        """The verdict of one webhook on a review. Raises CallError for every failure of the call or the response."""
        source = webhook.source
        timeout_s = source.get("timeoutSeconds", webhookconfiguration.DEFAULT_TIMEOUT_S)
        try:
            body = await self.client.post(
                source["clientConfig"], webhook.authority, msgspec.json.encode(review), timeout_s
            )
            return admission_reviews.parse_response(body, review, is_mutating=is_mutating)
        except CallError as error:
            raise CallError(f"failed to call webhook: {error}") from error
        except UndecodablePatch as error:
            raise CallError(str(error)) from error
        except InvalidReview as error:
            raise CallError(f"received invalid webhook response: {error}") from error


def _check_kind(patched: Mapping[str, Any], sent_object: Object, resource: Resource) -> None:
    """Raise StatusError 500 if a patch has changed the kind or the version of an object of that resource."""
    api_version, kind = str(patched.get("apiVersion") or ""), str(patched.get("kind") or "")
    if (api_version, kind) == (sent_object["apiVersion"], sent_object["kind"]):
        return
    if schema.find_kind(api_version, kind) is None:
        message = f'no kind "{kind}" is registered for version "{api_version}" {request_bodies.GO_SCHEME}'
        raise api_errors.internal_error(message)
    _, _, version = api_version.rpartition("/")
    types = f"({version}.{kind}) to ({_go_package(resource)}.{resource.kind})"
    raise api_errors.error_without_reason(f"converting {types}: unknown conversion")


def _go_package(resource: Resource) -> str:
    """The name of the Go package with the internal types of a group."""
    return resource.group.partition(".")[0] or "core"


def _apply_patch(operations: Sequence[Object], write: AdmittedWrite, sent_version: ServedVersion) -> Object:
    """The patched object of a write, in the storage version.

    Args:
        operations: a JSON patch for the object in the version `sent_version`.
        write: the write, whose object is not changed.
        sent_version: the version that the webhook got.

    Raises StatusError 500 if the patch cannot be applied, or the result is no such object.
    """
    sent_object = sent_version.converted(write.new, write.subresource)
    version = sent_version.version
    kind = BodyKind(sent_version.api_version, sent_version.resource.kind, version.message, version.decode)
    if write.subresource == "scale":
        kind = BodyKind("autoscaling/v1", "Scale", _SCALE_MESSAGE)
    try:
        patched = json_patch.apply_patch(sent_object, operations)
    except StatusError as error:
        raise api_errors.internal_error(str(error)) from error
    if isinstance(patched, Mapping) and sent_object is not None:
        _check_kind(patched, sent_object, sent_version.resource)
    try:
        obj = request_bodies.with_type_meta(kind.decode(patched), kind)
    except DecodeError as error:
        raise api_errors.internal_error(str(error)) from error
    if write.subresource == "scale":
        return obj
    if write.subresource != "status":
        version.default(obj)
    try:
        return version.to_storage(obj)
    except DecodeError as error:
        raise api_errors.internal_error(str(error)) from error
