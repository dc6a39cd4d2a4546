"""Admits writes: by mutating webhooks in sequence, then policies, then validating webhooks at the same time.

`podscaler up` sets it as the admission of `registry.objects`. Webhooks are not called for webhook configurations
themselves, and never for writes that no rule matches. A call that fails rejects the write, unless the failurePolicy is
`Ignore`.

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

SCALE_MESSAGE = "autoscaling/v1.Scale"


class WebhookAdmission:
    """Calls the webhooks of the stored configurations; an AsyncAdmission.

    Args:
        objects: the stored objects.

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
        """The object after all mutating webhooks. Raises StatusError for a rejected write."""
        repeatable: set[tuple[str, int]] = set()
        repeated: set[tuple[str, int]] = set()
        for webhook in self._index.mutating:
            changed = await self._mutated(webhook, write)
            if changed is not None and changed != write.new:
                write = replace(write, new=changed)
                repeated |= repeatable
            if webhook.source.get("reinvocationPolicy") == "IfNeeded":
                repeatable.add(webhook.identity)
        for webhook in self._index.mutating:
            if webhook.identity in repeated:
                changed = await self._mutated(webhook, write)
                write = write if changed is None else replace(write, new=changed)
        return write.new

    async def validate(self, write: AdmittedWrite) -> None:
        """Apply the admission policies, and call all validating webhooks. Raises StatusError for a rejected write."""
        if self._policies.is_needed:
            await self._policies.validate(write)
        calls = [self._validate(webhook, write) for webhook in self._index.validating]
        for result in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _mutated(self, webhook: Webhook, write: AdmittedWrite) -> Object | None:
        """The object after one webhook; None if it is not called or changes nothing."""
        answer = await self._verdict(webhook, write, is_mutating=True)
        if answer is None:
            return None
        verdict, sent = answer
        if not verdict.allowed:
            raise admission_reviews.rejection(webhook.name, verdict.status)
        if not verdict.patch or write.operation == "CONNECT":
            return None
        if write.new is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise api_errors.internal_error(f'admission webhook "{webhook.name}" {why}')
        return await self._objects.converted(lambda: _patched(verdict.patch, write, sent))

    async def _validate(self, webhook: Webhook, write: AdmittedWrite) -> None:
        verdict = await self._verdict(webhook, write, is_mutating=False)
        if verdict is not None and not verdict[0].allowed:
            raise admission_reviews.rejection(webhook.name, verdict[0].status)

    async def _verdict(
        self, webhook: Webhook, write: AdmittedWrite, *, is_mutating: bool
    ) -> tuple[WebhookVerdict, ServedVersion] | None:
        """The verdict of a webhook, and the version that it got; None if it is not called, or its failure is ignored.

        Raises StatusError 403 for match conditions that cannot be evaluated, 500 for a failed call.
        """
        if not matching.is_selected(webhook, write, self._objects):
            return None
        context = remote_admission.current()
        versions = matching.versions_of(self._objects, write, context.api_version)
        sent = matching.find_version(webhook, write, versions)
        if sent is None:
            return None
        request = admission_reviews.request_of(write, sent, versions[0], acting_user.current())
        new, old = await self._objects.converted(
            lambda: [sent.converted(obj, write.subresource) for obj in (write.new, write.old)]
        )
        if webhook.source.get("matchConditions"):
            namespace = matching.find_namespace(write, self._objects)
            variables = {"object": new, "oldObject": old, "request": request, "namespaceObject": namespace}
            if not matching.meets_conditions(webhook, write, variables):
                return None
        review = admission_reviews.review_of(webhook, request, new, old)
        try:
            verdict = await self._call(webhook, review, is_mutating=is_mutating)
        except CallError as error:
            text = f'failed calling webhook "{webhook.name}": {error}'
            if not webhook.ignores_failures:
                raise api_errors.internal_error(text) from error
            _log.warning("%s; the failure is ignored", text)
            return None
        context.warnings += [each for each in dict.fromkeys(verdict.warnings) if each not in context.warnings]
        return verdict, sent

    async def _call(self, webhook: Webhook, review: Object, *, is_mutating: bool) -> WebhookVerdict:
        """The verdict of one webhook. Raises CallError for whatever keeps it from answering."""
        source = webhook.source
        timeout_s = source.get("timeoutSeconds", webhookconfiguration.TIMEOUT_S)
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


def _check_kind(patched: Mapping[str, Any], before: Object, resource: Resource) -> None:
    """Raise StatusError 500 if a patch has changed the kind or the version of an object of that resource."""
    api_version, kind = str(patched.get("apiVersion") or ""), str(patched.get("kind") or "")
    if (api_version, kind) == (before["apiVersion"], before["kind"]):
        return
    if schema.find_kind(api_version, kind) is None:
        text = f'no kind "{kind}" is registered for version "{api_version}" {request_bodies.GO_SCHEME}'
        raise api_errors.internal_error(text)
    types = f"({api_version.rpartition('/')[2]}.{kind}) to ({_go_package(resource)}.{resource.kind})"
    raise api_errors.error_without_reason(f"converting {types}: unknown conversion")


def _go_package(resource: Resource) -> str:
    """The name of the Go package with the internal types of a group."""
    return resource.group.partition(".")[0] or "core"


def _patched(operations: Sequence[Object], write: AdmittedWrite, sent: ServedVersion) -> Object:
    """The object with a JSON patch that was made for its version `sent`, in the storage version.

    Raises StatusError 500 if the patch cannot be applied, or the result is no such object.
    """
    before = sent.converted(write.new, write.subresource)
    version = sent.version
    kind = BodyKind(sent.api_version, sent.resource.kind, version.message, version.decode)
    if write.subresource == "scale":
        kind = BodyKind("autoscaling/v1", "Scale", SCALE_MESSAGE)
    try:
        patched = json_patch.apply_patch(before, operations)
    except StatusError as error:
        raise api_errors.internal_error(str(error)) from error
    if isinstance(patched, Mapping) and before is not None:
        _check_kind(patched, before, sent.resource)
    try:
        obj = request_bodies.with_type_meta(kind.decoded(patched), kind)
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
