"""Creates pods from pod templates, hashes templates and compares them; the workload controllers call it.

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
"""Without vowels and characters that look alike, so that no name spells a word."""
_DIGITS = str.maketrans("0123456789", "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in "0123456789"))


def template_hash(template: Object, collisions: int = 0) -> str:
    """The value of `pod-template-hash`; `collisions` is the collisionCount of the owner's status."""
    checksum = zlib.crc32(msgspec.json.encode(_bare(template), order="deterministic"))
    if collisions:
        checksum = zlib.crc32(collisions.to_bytes(8, "little"), checksum)
    return str(checksum).translate(_DIGITS)


def same(left: Object, right: Object) -> bool:
    """Whether two templates are equal except for the label `pod-template-hash`."""
    return _bare(left) == _bare(right)


def pod_from(template: Object, owner: Object) -> Object:
    """A pod to create for `owner` (with its apiVersion and kind), which becomes its controller."""
    meta = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": owner["metadata"]["name"] + "-",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [controller_reference(owner)],
    }
    metadata |= {key: meta[key] for key in ("labels", "annotations", "finalizers") if meta.get(key)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def _bare(template: Object) -> Object:
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if value}
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != HASH_LABEL}
    metadata.pop("creationTimestamp", None)
    return {"metadata": metadata | ({"labels": labels} if labels else {}), "spec": template.get("spec") or {}}
