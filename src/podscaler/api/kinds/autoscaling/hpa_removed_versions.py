"""The record of HorizontalPodAutoscaler with the versions that upstream no longer serves.

Used by `podscaler up` in place of the usual record where the user asks for old versions, by `podscaler convert` and by
`podscaler lint`. Objects are stored as without it, so that it can be switched on and off.

Source: docs/spec/api.md 6 (Older versions); upstream's release notes for the releases in which the versions came and
went.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from podscaler.api.kinds.autoscaling import (
    hpa,
    hpa_defaults,
    hpa_extensions_v1beta1,
    hpa_v2alpha1,
    hpa_v2beta1,
    hpa_v2beta2,
)
from podscaler.api.resource.resources import Object, Resource, Version


def _deprecation(api_version: str, since: str, gone: str) -> str:
    """The warning in upstream's words."""
    kind = hpa.RESOURCE.kind
    replaced = f"use autoscaling/v2 {kind}"
    return f"{api_version} {kind} is deprecated in v{since}+, unavailable in v{gone}+; {replaced}"


def _version(module: Any, default: Callable[[Object], None], *, since: str, gone: str) -> Version:
    """The record of a version from its module: API_VERSION, MESSAGE, to_v2 and from_v2.

    Args:
        module: of the conversion.
        default: fills in the version's defaults.
        since: the release that deprecated it.
        gone: the release that no longer had it.
    """
    from_v2: Callable[[Object], Object] = module.from_v2
    return Version(
        module.API_VERSION.partition("/")[2],
        module.MESSAGE,
        default=default,
        to_storage=module.to_v2,
        from_storage=lambda stored: from_v2(hpa.complete(stored)),
        deprecation=_deprecation(module.API_VERSION, since, gone),
    )


EXTENSIONS = replace(
    hpa.RESOURCE,
    group="extensions",
    versions=(_version(hpa_extensions_v1beta1, hpa_defaults.set_v1_defaults, since="1.2", gone="1.6"),),
    stored_as=hpa.RESOURCE.key,
    short_names=(),
    categories=(),
)
"""The kind in its first group, a second API for the stored objects.

It leaves `hpa` and `all` to the kind's own group: kubectl would warn of two matches, and list every object twice.
"""

AUTOSCALING = replace(
    hpa.RESOURCE,
    versions=(
        *hpa.RESOURCE.versions,
        _version(hpa_v2beta2, hpa_defaults.set_v2_defaults, since="1.23", gone="1.26"),
        _version(hpa_v2beta1, hpa_v2beta1.set_defaults, since="1.22", gone="1.25"),
        _version(hpa_v2alpha1, hpa_defaults.set_v1_defaults, since="1.8", gone="1.9"),
    ),
)
"""The kind in its own group, with all versions of it."""


def served_among(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """The records with the kind in all its versions in place of its usual record."""
    found: list[Resource] = []
    for resource in resources:
        found += [AUTOSCALING, EXTENSIONS] if resource is hpa.RESOURCE else [resource]
    return tuple(found)
