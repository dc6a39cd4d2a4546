"""Defines the options of list, watch, update and delete requests, as plain dataclasses.

The HTTP handlers fill them from query and body (`apiserver.http.query_options`, `apiserver.handlers.deletes`),
controllers state what they need; `registry.objects.Objects` reads them: a new option is a field here and changes in
both. Versions, selectors and policies are not validated here: they are as the client sent them, so that `Objects`
raises kube-apiserver's errors in its order.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ListOptions:
    """metav1.ListOptions without timeout and bookmarks, which the HTTP stream handles.

    Attributes:
        label_selector, field_selector: selector texts, empty for all objects.
        resource_version, resource_version_match: as sent, empty if not sent.
        limit: the page size, 0 for all objects.
        continue_token: the token of the previous page, empty for the first page.
        send_initial_events: as sent, None if not sent; for watches only.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The uid and resourceVersion that the stored object must have; empty if any is accepted."""

    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Author:
    """The writer of an object, for managedFields.

    Attributes:
        manager: the field manager; empty if unknown.
        api_version: the version in which the object was written (`autoscaling/v1`), empty for the storage version.
    """

    manager: str = ""
    api_version: str = ""


SERVER = Author("kube-apiserver")
"""The API server itself: the default author, of the control plane's own writes."""


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """Options of an update.

    Attributes:
        subresource: `status`, or another subresource that updates the object; empty for the object itself.
        preconditions: for the stored object (including a PUT's metadata.uid).
        dry_run: whether to check and respond without storing.
        author: the writer; None to store the managedFields of the changed object.
    """

    subresource: str = ""
    preconditions: Preconditions = field(default_factory=Preconditions)
    dry_run: bool = False
    author: Author | None = SERVER


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions.

    Attributes:
        grace_period_s: the seconds until the object is removed, as sent (negative counts as 1); None if not sent.
        propagation: `Background`, `Foreground` or `Orphan` as sent (others are refused), empty if not sent.
        orphan_dependents: the deprecated field, None if not sent.
        preconditions: for the stored object.
        dry_run: whether to check and respond without storing.
        forces_unreadable: the field ignoreStoreReadErrorWithClusterBreakingPotential: the object is deleted only if it
            cannot be read.
    """

    grace_period_s: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None
    preconditions: Preconditions = field(default_factory=Preconditions)
    dry_run: bool = False
    forces_unreadable: bool = False


LATEST = ListOptions()
"""All objects in their newest version."""
PLAIN_UPDATE = UpdateOptions()
"""An update of the object itself without preconditions."""
PLAIN_DELETE = DeleteOptions()
"""A delete with the kind's defaults and without preconditions."""
