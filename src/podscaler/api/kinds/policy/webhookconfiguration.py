"""The records of ValidatingWebhookConfiguration and MutatingWebhookConfiguration (admissionregistration.k8s.io/v1).

MUTATING and VALIDATING, at the end, register the functions above them as hooks, which `api.resource.resources`
explains; `api.kinds.catalog` lists them for the API server. `podscaler.controlplane.apiserver.webhooks` calls the
webhooks, `webhook_validation` validates them. A new field of webhooks: its default here, its check there.

Source: kube-apiserver's defaults and validation of the group.
"""

from functools import partial

from podscaler.api.kinds.policy import webhook_validation
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

GROUP = "admissionregistration.k8s.io"
DEFAULT_TIMEOUT_S = 10
_DEFAULT_SERVICE_PORT = 443
"""Defaults of a webhook: the time limit of a call, and the port of its Service."""


def set_defaults(configuration: Object, *, is_mutating: bool = False) -> None:
    """API defaults, in place; only the webhooks of a MutatingWebhookConfiguration have a reinvocationPolicy."""
    for webhook in configuration.get("webhooks") or []:
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", DEFAULT_TIMEOUT_S)
        if is_mutating:
            webhook.setdefault("reinvocationPolicy", "Never")
        for rule in webhook.get("rules") or []:
            rule.setdefault("scope", "*")
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", _DEFAULT_SERVICE_PORT)


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a configuration to be stored."""
    old_webhooks = None if old is None else old.get("webhooks") or []
    return webhook_validation.validate(new.get("webhooks") or [], old_webhooks)


def _record(kind: str, *, is_mutating: bool) -> Resource:
    """The resource definition of one of the two kinds."""
    return Resource(
        group=GROUP,
        plural=f"{kind.lower()}s",
        kind=kind,
        versions=(
            Version("v1", f"admissionregistration/v1.{kind}", default=partial(set_defaults, is_mutating=is_mutating)),
        ),
        namespaced=False,
        categories=("api-extensions",),
        strategy=Strategy(
            validate=validate,
            has_generation=True,
            spec_of=lambda configuration: configuration.get("webhooks"),
            allows_unconditional_update=False,
        ),
        printer=tables.named(
            "configuration",
            Column("Webhooks", "integer", description="The number of its webhooks."),
            cells=lambda configuration, _now_ns: [len(configuration.get("webhooks") or [])],
            note="",
        ),
    )


MUTATING = _record("MutatingWebhookConfiguration", is_mutating=True)
VALIDATING = _record("ValidatingWebhookConfiguration", is_mutating=False)
