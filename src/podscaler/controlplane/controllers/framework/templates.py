"""Creates pods from pod templates, hashes templates and compares them; the workload controllers call it.

`pod_from` has what a pod gets besides the template's fields, `_comparable` what hashes and comparisons ignore.

Source: core/v1 PodTemplateSpec; the label `pod-template-hash` (documentation of Deployment).
Differs: the hash is the CRC-32 of the template's canonical JSON; upstream hashes a printed Go structure. Clients rely
only on its stability and its alphabet.
"""

import zlib
from typing import Any

import msgspec

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework.ownership import controller_reference

HASH_LABEL = "pod-template-hash"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits without vowels, so that no name contains a word, and without characters that look alike."""
_DIGITS = str.maketrans("0123456789", "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in "0123456789"))
"""Replaces each decimal digit of a checksum by a character of the alphabet, as upstream's SafeEncodeString does."""


def template_hash(template: Object, collisions: int = 0) -> str:
    """The value of `pod-template-hash`; `collisions` is the collisionCount of the owner's status."""
    checksum = zlib.crc32(msgspec.json.encode(_comparable(template), order="deterministic"))
    if collisions:
        checksum = zlib.crc32(collisions.to_bytes(8, "little"), checksum)
    return str(checksum).translate(_DIGITS)


def are_equal(left: Object, right: Object) -> bool:
    """Whether two templates are equal except for the label `pod-template-hash`."""
    return _comparable(left) == _comparable(right)


def pod_from(template: Object, owner: Object) -> Object:
    """The manifest of a pod to create for `owner` (with its apiVersion and kind), which becomes its controller."""
    template_metadata = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": owner["metadata"]["name"] + "-",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [controller_reference(owner)],
    }
    copied_fields = ("labels", "annotations", "finalizers")
    metadata |= {field: template_metadata[field] for field in copied_fields if template_metadata.get(field)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def _comparable(template: Object) -> Object:
    """A copy of a template without `pod-template-hash`, creationTimestamp, and empty fields of the metadata."""
    metadata = {field: value for field, value in (template.get("metadata") or {}).items() if value}
    all_labels = metadata.pop("labels", None) or {}
    labels = {label: value for label, value in all_labels.items() if label != HASH_LABEL}
    metadata.pop("creationTimestamp", None)
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": template.get("spec") or {}}
