"""Derives the scale of a workload from the workload itself, equal to the API server's scale subresource.

`podscaler.controller.informers.target_informer` decodes the objects of its watches here. Only the fields of a scale are
decoded, so that a list of thousands of workloads is cheap. A test checks that derived and requested scales are equal.

Source: Kubernetes v1.37.0, the scale subresources of apps/v1 and of core/v1 ReplicationController.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import field

from podscaler.api.machinery import selectors
from podscaler.api.machinery.meta import ObjectMeta, Wire
from podscaler.api.machinery.selectors import SelectorError
from podscaler.api.typed.autoscaling import Scale, ScaleSpec, ScaleStatus

Resource = tuple[str, str]
"""The group and plural of a kind of workloads."""


class _Meta(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None


class _Spec(Wire, frozen=True):
    replicas: int = 1
    selector: dict[str, Any] | None = None


class _Status(Wire, frozen=True):
    replicas: int = 0


class _Workload(Wire, frozen=True):
    metadata: _Meta = field(default_factory=_Meta)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)


_DECODER = msgspec.json.Decoder(_Workload)


def _by_object(selector: dict[str, Any] | None) -> str:
    return str(selectors.from_label_selector(selector))


def _by_labels(selector: dict[str, Any] | None) -> str:
    return str(selectors.from_labels(selector or {}))


SELECTOR_TEXTS: Mapping[Resource, Callable[[dict[str, Any] | None], str]] = {
    ("apps", "deployments"): _by_object,
    ("apps", "replicasets"): _by_object,
    ("apps", "statefulsets"): _by_object,
    ("", "replicationcontrollers"): _by_labels,
}
"""The resources whose scales can be derived, and how the selector of each becomes text."""


def reader(resource: Resource) -> Callable[[msgspec.Raw], Scale]:
    """A decoder of scales from workloads in JSON, for a resource of SELECTOR_TEXTS; it raises ValueError."""
    selector_text = SELECTOR_TEXTS[resource]

    def read(raw: msgspec.Raw) -> Scale:
        workload = _DECODER.decode(raw)
        meta, spec = workload.metadata, workload.spec
        try:
            selector = selector_text(spec.selector)
        except SelectorError as error:
            raise ValueError(f"{meta.namespace}/{meta.name}: {error}") from error
        return Scale(
            api_version="autoscaling/v1",
            metadata=ObjectMeta(
                name=meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                creation_timestamp=meta.creation_timestamp,
            ),
            spec=ScaleSpec(spec.replicas),
            status=ScaleStatus(workload.status.replicas, selector),
        )

    return read
