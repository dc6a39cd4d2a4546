"""Defines HorizontalPodAutoscaler with the versions that kube-apiserver no longer serves (v2beta2 and older).

A Resource describes a kind with its versions. `podscaler up` uses those of this module in place of the one in `hpa` if
the user requests old versions; `podscaler convert`, `podscaler lint` and simulations always use them. Objects are
stored in the same form with and without them. Another version: a module that is a `_ConversionModule`, a line in
AUTOSCALING, and `conversion._ANNOTATIONS_READ`.

Source: docs/spec/api.md 6 (Older versions); Kubernetes' release notes for the releases that deprecated and removed
each version.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from podscaler.api.kinds.autoscaling import (
    hpa,
    hpa_defaults,
    hpa_extensions_v1beta1,
    hpa_v2alpha1,
    hpa_v2beta1,
    hpa_v2beta2,
)
from podscaler.api.resource.resources import Object, Resource, Version


class _ConversionModule(Protocol):
    """The module with the conversion of one version; `from_v2` takes an object that `hpa.complete` has completed."""

    API_VERSION: str
    MESSAGE: str

    def to_v2(self, hpa: Object) -> Object: ...

    def from_v2(self, hpa: Object) -> Object: ...


def _deprecation_warning(api_version: str, deprecated_in: str, removed_in: str) -> str:
    """The warning of kube-apiserver about a version; the releases are texts such as `1.22`."""
    kind = hpa.RESOURCE.kind
    replacement = f"use autoscaling/v2 {kind}"
    return f"{api_version} {kind} is deprecated in v{deprecated_in}+, unavailable in v{removed_in}+; {replacement}"


def _version(
    module: _ConversionModule, set_defaults: Callable[[Object], None], *, deprecated_in: str, removed_in: str
) -> Version:
    """A removed version of autoscalers.

    Args:
        set_defaults: sets the defaults of the version.
        deprecated_in: the release that deprecated it.
        removed_in: the release that removed it.
    """
    return Version(
        module.API_VERSION.partition("/")[2],
        module.MESSAGE,
        default=set_defaults,
        to_storage=module.to_v2,
        from_storage=lambda stored: module.from_v2(hpa.complete(stored)),
        deprecation=_deprecation_warning(module.API_VERSION, deprecated_in, removed_in),
    )


EXTENSIONS = replace(
    hpa.RESOURCE,
    group="extensions",
    versions=(_version(hpa_extensions_v1beta1, hpa_defaults.set_v1_defaults, deprecated_in="1.2", removed_in="1.6"),),
    stored_as=hpa.RESOURCE.key,
    short_names=(),
    categories=(),
)
"""The kind in its first group, as a second API of the stored objects.

It has no short name and category: kubectl would warn of two matches for `hpa`, and list every object of `all` twice.
"""

AUTOSCALING = replace(
    hpa.RESOURCE,
    versions=(
        *hpa.RESOURCE.versions,
        _version(hpa_v2beta2, hpa_defaults.set_v2_defaults, deprecated_in="1.23", removed_in="1.26"),
        _version(hpa_v2beta1, hpa_v2beta1.set_defaults, deprecated_in="1.22", removed_in="1.25"),
        _version(hpa_v2alpha1, hpa_defaults.set_v1_defaults, deprecated_in="1.8", removed_in="1.9"),
    ),
)
"""The kind in the group autoscaling, with all its versions."""


def with_removed_versions(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """`resources` with AUTOSCALING and EXTENSIONS in place of the record in `hpa`."""
    served_resources: list[Resource] = []
    for resource in resources:
        served_resources += [AUTOSCALING, EXTENSIONS] if resource is hpa.RESOURCE else [resource]
    return tuple(served_resources)
