"""Looks up the patch strategy and merge key of a field of an API type, for strategic merge patches.

Called by `podscaler.controlplane.apiserver.handlers.strategic_merge` for each field of a patch, which also implements
the strategies: a new one is an attribute of `Merge`, and a case there.

    merge_strategy("core/v1.PodSpec", "containers")        Merge(merge=True, key="name")
    merge_strategy("core/v1.PodSpec", "volumes")           Merge(merge=True, retain_keys=True, key="name")
    merge_strategy("meta/v1.ObjectMeta", "finalizers")     Merge(merge=True)            a set of scalars
    merge_strategy("apps/v1.DeploymentSpec", "strategy")   Merge(retain_keys=True)      an object
    merge_strategy("core/v1.PodSpec", "tolerations")       None: a list is replaced, an object or map is merged by key

Field names come from clients, so caches are bounded.

Source: the patchStrategy and patchMergeKey tags of the API types (`schema.Field`).
"""

from dataclasses import dataclass
from functools import lru_cache

from podscaler.api.schema import schema


@dataclass(frozen=True, slots=True)
class Merge:
    """The declared strategy of one field.

    Attributes:
        merge: a list is merged rather than replaced.
        retain_keys: clients send `$retainKeys` for it; the server obeys that for any field, and does not read this.
        replace: an object or map is replaced as a whole.
        key: the field that identifies an element of a merged list of objects; empty for a list of scalars.
    """

    merge: bool = False
    retain_keys: bool = False
    replace: bool = False
    key: str = ""


@lru_cache(maxsize=8192)
def merge_strategy(message: str, field: str) -> Merge | None:
    """The strategy of a message's field (JSON name); None if none is declared, and for an unknown field."""
    schema_field = schema.find_field(message, field)
    if schema_field is None or not schema_field.patch_strategy:
        return None
    strategies = schema_field.patch_strategy.split(",")
    return Merge(
        merge="merge" in strategies,
        retain_keys="retainKeys" in strategies,
        replace="replace" in strategies,
        key=schema_field.patch_merge_key,
    )


@lru_cache(maxsize=8192)
def element_message(message: str, field: str) -> str:
    """The message of a field's value, or of its elements; empty where these are scalars, free-form or unknown.

    Below a field with an empty result a patch merges objects by key, and replaces lists.
    """
    schema_field = schema.find_field(message, field)
    return schema_field.type if schema_field is not None and schema_field.is_object else ""


@lru_cache(maxsize=8192)
def is_map(message: str, field: str) -> bool:
    """Whether the field is a map from strings, whose values (not itself) are of `element_message`."""
    schema_field = schema.find_field(message, field)
    return schema_field is not None and schema_field.map
