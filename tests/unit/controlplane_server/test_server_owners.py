"""Owner references that stand twice."""

from typing import Any

import pytest

from podscaler.controlplane.apiserver.handlers import writes

ONE: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
OTHER = ONE | {"uid": "w"}
TEXT = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u"
)


@pytest.mark.parametrize(
    ("sent", "kept", "told"),
    [
        pytest.param([ONE, OTHER], [ONE, OTHER], False, id="two owners"),
        pytest.param([ONE, OTHER, ONE, ONE], [ONE, OTHER], True, id="one thrice"),
        pytest.param([ONE, ONE | {"controller": True}], [ONE, ONE | {"controller": True}], False, id="not quite equal"),
    ],
)
@pytest.mark.parametrize("is_patched", [False, True])
def test_equal_owners_are_one(*, sent: list[Any], kept: list[Any], told: bool, is_patched: bool) -> None:
    """Of equal references one stays, and the client is told once, however often its patch is tried."""
    obj = {"metadata": {"ownerReferences": sent}}
    warnings: list[str] = []
    writes.remove_duplicate_owners(obj, warnings, is_patched=is_patched)
    writes.remove_duplicate_owners({"metadata": {"ownerReferences": sent}}, warnings, is_patched=is_patched)
    assert obj["metadata"]["ownerReferences"] == kept
    when = " after mutating admission happens" if is_patched else ""
    assert warnings == ([TEXT.format(when=when)] if told else [])
