"""What a request may ask beyond its object: the options of list, watch, update and delete as plain records.

The HTTP side fills them from query and body, `Objects` reads them. Texts that upstream validates late (versions,
selectors, policies) are kept as the client sent them, so that `Objects` refuses them in upstream's words.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ListOptions:
    """metav1.ListOptions as far as they say what is selected; timeout and bookmarks are the stream's.

    Attributes:
        label_selector, field_selector: selector texts, empty for all.
        resource_version, resource_version_match: as sent, empty where not.
        limit: at most so many objects in a page, 0 for all.
        continue_token: where the next page begins, as an earlier page said.
        send_initial_events: as sent, None where not; a watch only.
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
    """What must hold of the stored object; empty where anything may."""

    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, as managedFields tell it.

    Attributes:
        manager: the field manager; empty for one that nobody knows.
        api_version: in which the object was written (`autoscaling/v1`), empty for the storage version.
    """

    manager: str = ""
    api_version: str = ""


SERVER = Author("kube-apiserver")
"""The server itself, where nobody else says who writes."""


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """How to update.

    Attributes:
        subresource: `status`, or another subresource whose PUT is an update of the object; empty for the object itself.
        preconditions: what must hold of the stored object (a PUT's metadata.uid goes here).
        dry_run: check and answer, store nothing.
        author: who writes; None where the change itself says who manages what afterwards, or changes nothing of it.
    """

    subresource: str = ""
    preconditions: Preconditions = field(default_factory=Preconditions)
    dry_run: bool = False
    author: Author | None = SERVER


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions.

    Attributes:
        grace_period_s: as sent (negative counts as 1), None where not.
        propagation: `Background`, `Foreground`, `Orphan` as sent (others are refused), empty where not.
        orphan_dependents: the field of old clients, None where not sent.
        preconditions: what must hold of the stored object.
        dry_run: check and answer, store nothing.
        forces_unreadable: an object that cannot be read is meant, and no other.
    """

    grace_period_s: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None
    preconditions: Preconditions = field(default_factory=Preconditions)
    dry_run: bool = False
    forces_unreadable: bool = False


LATEST = ListOptions()
PLAIN_UPDATE = UpdateOptions()
PLAIN_DELETE = DeleteOptions()
