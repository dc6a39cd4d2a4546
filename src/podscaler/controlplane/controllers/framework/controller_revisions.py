"""Keeps the history of pod templates of StatefulSets and DaemonSets as ControllerRevisions.

Their controllers call it in every sync; `kubectl rollout history` and `undo` read the same objects, whose `data` is a
strategic merge patch that restores the template.

1. There is one revision for each template; the newest has the highest number.
2. A template that is used again gives its old revision the highest number; no other revision is created.
3. Revisions beyond `revisionHistoryLimit` are deleted, lowest number first, unless pods still have their template.

Source: apps/v1 ControllerRevision; the history of upstream's StatefulSet and DaemonSet controllers.
Differs: revisions without an owner are adopted only when a new revision would have their name.
"""

from collections.abc import Collection, Sequence

import msgspec

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.framework import ownership, selection, templates, write_errors
from podscaler.controlplane.registry.registry import Registry

REVISIONS = "controllerrevisions.apps"
HASH_LABEL = "controller.kubernetes.io/hash"
"""The label of a StatefulSet's revisions: the hash of the template."""
POD_LABEL = "controller-revision-hash"
"""The label of pods: for a StatefulSet the name of their revision, for a DaemonSet its hash, as on the revision."""
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations of the owner that its revisions do not have."""
_MAX_NAMES_TRIED = 20
"""How many names are tried for a new revision; each contains another hash."""
_DEFAULT_HISTORY_LIMIT = 10


def list_owned(registry: Registry, owner: Object) -> list[Object]:
    """The owner's revisions, oldest first."""
    revisions = ownership.controlled_by(registry, REVISIONS, owner)
    return sorted(revisions, key=lambda revision: (revision.get("revision", 0), revision["metadata"]["name"]))


def template_of(revision: Object) -> Object:
    """The pod template in a revision's `data`, without the directive of the patch."""
    patch = revision["data"]["spec"]["template"]
    return {field: value for field, value in patch.items() if field != "$patch"}


def hash_of(revision: Object) -> str:
    """The template hash in a revision's label, empty without the label."""
    labels = revision["metadata"].get("labels") or {}
    return str(labels.get(POD_LABEL) or labels.get(HASH_LABEL, ""))


async def ensure_newest(registry: Registry, owner: Object, history: Sequence[Object]) -> Object:
    """Create or renumber the revision of the owner's current template if necessary; returns it as stored.

    Args:
        registry: where revisions are.
        owner: with apiVersion and kind; its `status.collisionCount` may be incremented in place.
        history: the owner's revisions, oldest first.

    Raises:
        StatusError: the revision cannot be written; with code 0 no free name was found for it.
    """
    data = _revision_data(owner["spec"]["template"])
    revision_number = max((revision.get("revision", 0) for revision in history), default=0) + 1
    equal_revisions = [revision for revision in history if revision.get("data") == data]
    if not equal_revisions:
        return await _create_revision(registry, owner, data, revision_number)
    last_equal = equal_revisions[-1]
    return last_equal if last_equal is history[-1] else await _renumber(registry, last_equal, revision_number)


async def truncate(registry: Registry, owner: Object, history: Sequence[Object], live_names: Collection[str]) -> None:
    """Delete the oldest revisions beyond `revisionHistoryLimit`. Raises StatusError.

    Args:
        registry: where revisions are.
        owner: the StatefulSet or DaemonSet.
        history: the owner's revisions, oldest first.
        live_names: the names of revisions that must stay and do not count towards the limit.
    """
    unused = [revision for revision in history if revision["metadata"]["name"] not in live_names]
    limit = owner["spec"].get("revisionHistoryLimit", _DEFAULT_HISTORY_LIMIT)
    for revision in unused[: max(len(unused) - limit, 0)]:
        uid = revision["metadata"]["uid"]
        await write_errors.ignoring_gone(registry.delete(REVISIONS, *selection.key_of(revision), uid=uid))


def _revision_data(template: Object) -> Object:
    """The strategic merge patch that restores a template, with sorted keys: some clients compare bytes."""
    patch = {"spec": {"template": {**template, "$patch": "replace"}}}
    data: Object = msgspec.json.decode(msgspec.json.encode(patch, order="sorted"))
    return data


async def _renumber(registry: Registry, revision: Object, number: int) -> Object:
    """Write another number into a stored revision; returns the revision as stored."""
    return await registry.mutate(REVISIONS, *selection.key_of(revision), lambda stored: stored.update(revision=number))


async def _create_revision(registry: Registry, owner: Object, data: Object, revision_number: int) -> Object:
    """Create a revision, or adopt the equal one of the same name; returns it as stored. Raises StatusError.

    If a different revision has the name, `status.collisionCount` of the owner is incremented in place, which changes
    the hash in the name.
    """
    status = owner.setdefault("status", {})
    for _ in range(_MAX_NAMES_TRIED):
        new_revision = _new_revision(owner, data, revision_number)
        try:
            return await registry.create(REVISIONS, new_revision)
        except StatusError as error:
            if not write_errors.is_already_exists(error):
                raise
            adopted = await _adopt_existing(registry, owner, new_revision)
            if adopted is not None:
                return adopted
            status["collisionCount"] = status.get("collisionCount", 0) + 1
    raise StatusError(f"no free name for a revision of {owner['metadata']['name']}", code=0)


async def _adopt_existing(registry: Registry, owner: Object, new_revision: Object) -> Object | None:
    """The existing revision with the name of `new_revision`, adopted; None if its data or controller are different."""
    existing = registry.find(REVISIONS, *selection.key_of(new_revision))
    if existing is None or existing.get("data") != new_revision["data"]:
        return None
    controller = ownership.controller_of(existing)
    if controller is not None:
        return existing if controller["uid"] == owner["metadata"]["uid"] else None

    def adopt(stored: Object) -> None:
        stored["metadata"]["ownerReferences"] = new_revision["metadata"]["ownerReferences"]
        stored["revision"] = new_revision["revision"]

    return await registry.mutate(REVISIONS, *selection.key_of(new_revision), adopt)


def _new_revision(owner: Object, data: Object, revision_number: int) -> Object:
    """The manifest of the ControllerRevision of the owner's template, named for the template's hash."""
    metadata, template = owner["metadata"], owner["spec"]["template"]
    hash_label = POD_LABEL if owner["kind"] == "DaemonSet" else HASH_LABEL
    template_hash = templates.template_hash(template, (owner.get("status") or {}).get("collisionCount", 0))
    owner_annotations = metadata.get("annotations") or {}
    annotations = {key: value for key, value in owner_annotations.items() if key not in _NOT_COPIED}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{metadata['name']}-{template_hash}",
            "namespace": metadata["namespace"],
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), hash_label: template_hash},
            "annotations": annotations,
            "ownerReferences": [ownership.controller_reference(owner)],
        },
        "data": data,
        "revision": revision_number,
    }
