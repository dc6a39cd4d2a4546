"""Selects stored objects by namespace, label selector (`app=web`) and field selector (`status.phase=Running`).

`registry.objects` creates a `SelectionPredicate` from the selector texts of a request; `storage.listing` and `watching`
evaluate it. A new condition: a field of the predicate, `is_filtered` and `matches`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import EVERYTHING, Selector, SelectorError
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Resource
from podscaler.controlplane.storage import field_selectors
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.field_selectors import FieldSelectorError, Term
from podscaler.controlplane.storage.options import ListOptions


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """Selects the objects of one kind that match all its conditions.

    Attributes:
        resource: the kind.
        namespace: the namespace, `""` for all namespaces.
        labels: the label selector; the default matches every object.
        fields: the requirements of the field selector, all of which must be met.
    """

    resource: Resource
    namespace: str = ""
    labels: Selector = EVERYTHING
    fields: tuple[Term, ...] = ()

    @property
    def is_filtered(self) -> bool:
        """Whether it selects by labels or fields, not by namespace only."""
        return bool(self.fields or self.labels.requirements or self.labels.matches_nothing)

    def is_in_namespace(self, entry: Entry) -> bool:
        """Whether `entry` is in the namespace of the predicate; labels and fields may still exclude it."""
        return not self.namespace or entry.namespace == self.namespace

    def matches(self, entry: Entry) -> bool:
        """Whether `entry` is selected."""
        if not self.is_in_namespace(entry) or not self.labels.matches(entry.labels):
            return False
        return not self.fields or all(term.matches(self._fields_of(entry)) for term in self.fields)

    def _fields_of(self, entry: Entry) -> Mapping[str, str]:
        """The selectable fields, decoded once for each version of an object and each resource that serves it."""
        if entry.fields is None or entry.fields[0] != self.resource.key:
            metadata_fields = {"metadata.name": entry.name, "metadata.namespace": entry.namespace}
            entry.fields = (self.resource.key, {**self.resource.fields(entry.decode()), **metadata_fields})
        return entry.fields[1]


def selection(resource: Resource, namespace: str, options: ListOptions) -> SelectionPredicate:
    """The predicate of list or watch options. Raises StatusError 400 for invalid selectors and unknown fields."""
    try:
        labels = selectors.parse(options.label_selector)
        requirements = field_selectors.parse(options.field_selector)
        if requirements:
            field_selectors.check_known(
                requirements, selectable_fields(resource), is_custom=resource.is_custom, kind=resource.kind
            )
    except (SelectorError, FieldSelectorError) as error:
        raise api_errors.bad_request(str(error)) from error
    return SelectionPredicate(resource, namespace, labels, requirements)


def selectable_fields(resource: Resource) -> frozenset[str]:
    """The names of a kind's selectable fields besides those of metadata, such as `status.phase` of pods."""
    return frozenset(resource.fields({"metadata": {}, "spec": {}, "status": {}}))  # every object has the same names
