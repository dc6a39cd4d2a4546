"""Converts custom resources between versions by the responses of a conversion webhook (strategy `Webhook`).

`records` calls `convert` synchronously, also inside transactions, which cannot wait for the network. Results come from
the scope of the current task, by default that of one request; a missing one raises `ConversionNeeded`. Then
`controlplane.registry.remote_conversion` calls the webhook, stores the result in the scope and runs the step again.

Invariant: a webhook changes no metadata but labels and annotations, so results are found again for the same object with
another uid, time or resourceVersion.

Source: kube-apiserver's webhook converter (restoreObjectMeta).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from podscaler.api.resource.resources import Object
from podscaler.base.errors import PodscalerError

CHANGED_METADATA = ("labels", "annotations")
"""The members of metadata that a webhook may change."""
_KEY_METADATA = ("name", "namespace", *CHANGED_METADATA)
_Results = dict[tuple[str, bytes], bytes | None]
"""`_result_key` -> the converted object as JSON; None for a conversion that failed and was optional."""
_RESULTS: ContextVar[_Results | None] = ContextVar("podscaler-converted-objects", default=None)
"""The results of the scope that is open; None without one."""


class ConversionNeeded(PodscalerError):
    """A webhook has to convert objects before the step that raised this can be run again.

    Attributes:
        webhook: `spec.conversion.webhook` of the definition.
        objects: what to convert; not empty.
        api_version: the wanted version.
        stored_revision: the resourceVersion of the stored object that a write has to convert; 0 for other objects. The
            writer of objects (`controlplane.registry.object_writer`) sets it.
        is_optional: whether the step can do without: it is run again after a failed conversion, and calls `has_failed`.
            Set by `controlplane.registry.field_managers`.
    """

    def __init__(self, webhook: Object, objects: Sequence[Object], api_version: str) -> None:
        super().__init__(f"{len(objects)} objects have to be converted to {api_version} by a webhook")
        self.webhook = webhook
        self.objects = objects
        self.api_version = api_version
        self.stored_revision = 0
        self.is_optional = False


@contextmanager
def scope(*, is_new: bool = False) -> Iterator[None]:
    """Keep converted objects until the end of the block, in the scope that is open already unless `is_new`."""
    if _RESULTS.get() is not None and not is_new:
        yield
        return
    token = _RESULTS.set({})
    try:
        yield
    finally:
        _RESULTS.reset(token)


def convert(webhook: Object, obj: Object, api_version: str) -> Object:
    """A converted copy of an object. Raises ConversionNeeded."""
    converted_json = (_RESULTS.get() or {}).get(_result_key(obj, api_version))
    if converted_json is None:
        raise ConversionNeeded(webhook, [obj], api_version)
    converted: Object = msgspec.json.decode(converted_json)
    converted_metadata = converted["metadata"]
    kept_metadata = {name: value for name, value in obj["metadata"].items() if name not in CHANGED_METADATA}
    return {**converted, "metadata": {**kept_metadata, **converted_metadata}}


def find_missing(webhook: Object, objects: Iterable[Object], api_version: str) -> ConversionNeeded | None:
    """What the scope lacks to convert all objects; None if nothing is missing."""
    results = _RESULTS.get() or {}
    missing = [
        obj
        for obj in objects
        if obj["apiVersion"] != api_version and results.get(_result_key(obj, api_version)) is None
    ]
    return ConversionNeeded(webhook, missing, api_version) if missing else None


def keep_converted(needed: ConversionNeeded, converted: Iterable[Object]) -> None:
    """Store the converted objects, in the order of `needed.objects`, in the scope of the current task."""
    results = _RESULTS.get()
    assert results is not None, "conversions happen in a scope"
    for obj, converted_object in zip(needed.objects, converted, strict=True):
        changed_metadata = {
            name: converted_object["metadata"][name]
            for name in CHANGED_METADATA
            if converted_object["metadata"].get(name)
        }
        results[_result_key(obj, needed.api_version)] = msgspec.json.encode(
            {**converted_object, "metadata": changed_metadata}
        )


def keep_failed(needed: ConversionNeeded) -> None:
    """Note in the scope of the current task that an optional conversion failed."""
    results = _RESULTS.get()
    assert results is not None, "conversions happen in a scope"
    for obj in needed.objects:
        results[_result_key(obj, needed.api_version)] = None


def has_failed(needed: ConversionNeeded) -> bool:
    """Whether the scope of the current task has noted that one of these conversions failed."""
    results = _RESULTS.get() or {}
    keys = [_result_key(obj, needed.api_version) for obj in needed.objects]
    return any(key in results and results[key] is None for key in keys)


def _result_key(obj: Object, api_version: str) -> tuple[str, bytes]:
    """The key of a result: the version, and the object with the only metadata that its webhook may depend on."""
    metadata = {name: obj["metadata"][name] for name in _KEY_METADATA if obj["metadata"].get(name)}
    return api_version, msgspec.json.encode({**obj, "metadata": metadata}, order="sorted")
