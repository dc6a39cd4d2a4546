"""Converts the managedFields of an object to those of its Scale, and back.

Called by `podscaler.controlplane.registry.scale_field_managers`, for the scale subresource. The managers of a Scale are
those of its object that own the replicas; a write of the Scale changes who owns the replicas of the object.

As in kube-apiserver, a PUT of an unchanged Scale changes managedFields: an updater is identified by its apiVersion,
too, which is autoscaling/v1 in a Scale, so that it gets another entry in the object, without a time.

Source: apimachinery's ScaleHandler; captured responses of kube-apiserver (tests/conformance/golden/scale.jsonl).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import field_sets, managers
from podscaler.api.managed_fields.managers import Entries, ManagedFields, Managers

SCALE_VERSION = "autoscaling/v1"
_REPLICAS_OF_SCALE = ("f:spec", "f:replicas")


@dataclass(frozen=True, slots=True)
class ScaleFields:
    """Converts managedFields between a kind and its Scale.

    Attributes:
        versions: the apiVersions in which the kind is served.
        replicas_path: the path of the replicas, as path elements: ("f:spec", "f:replicas").
        version: the apiVersion of the request.
    """

    versions: frozenset[str]
    replicas_path: Sequence[str]
    version: str

    def of_scale(self, parent_entries: Iterable[Any]) -> Entries:
        """The entries of the Scale, from those of its object."""
        scale_managers: Managers = {}
        for manager, managed in managers.parse(parent_entries).items():
            if managed.version in self.versions and field_sets.has(managed.fields, self.replicas_path):
                scale_managers[manager] = ManagedFields(field_sets.of(_REPLICAS_OF_SCALE), SCALE_VERSION, managed.time)
        return managers.to_entries(scale_managers.items())

    def of_parent(self, parent_entries: Iterable[Any], scale_entries: Iterable[Any]) -> Entries:
        """The new entries of the object after a write of its Scale, without those of versions that are not served.

        Args:
            parent_entries: the entries of the object before the write.
            scale_entries: the entries of the Scale after it.
        """
        parent_managers = managers.parse(parent_entries)
        owners_in_scale = {
            manager
            for manager, managed in managers.parse(scale_entries).items()
            if field_sets.has(managed.fields, _REPLICAS_OF_SCALE)
        }
        replicas_field = field_sets.of(self.replicas_path)
        kept_managers: Managers = {}
        for manager, managed in parent_managers.items():
            fields = managed.fields
            if manager not in owners_in_scale:
                fields = field_sets.difference(fields, replicas_field)
            if fields and managed.version in self.versions:
                kept_managers[manager] = managed.with_fields(fields)
        # managers of the Scale that the object does not have: all updaters, as the apiVersions differ
        new_owners = [
            (manager, ManagedFields(replicas_field, self.version))
            for manager in owners_in_scale - parent_managers.keys()
        ]
        return managers.to_entries([*kept_managers.items(), *new_owners])
