"""Current objects by key, in order, by owner."""

import pytest

from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.object_table import Table


def entry(key: str, *owners: str) -> Entry:
    """An entry at `namespace/name` that these uids own."""
    namespace, _, name = key.rpartition("/")
    references = [{"uid": uid} for uid in owners]
    return entries.from_object(
        "g", {"metadata": {"name": name, "namespace": namespace, "ownerReferences": references}}, 1
    )


KEYS = ["a-b/x", "a/x", "a/y", "a0/x", "b/x"]


@pytest.mark.parametrize("filled", [True, False], ids=["loaded at once", "one by one"])
def test_lists_are_in_key_order(filled: bool) -> None:
    """The order is that of the text `namespace/name`, as in etcd: `a-b/` stands before `a/`."""
    table = Table()
    found = [entry(key) for key in reversed(KEYS)]
    if filled:
        table.fill(found)
    else:
        for each in found:
            table.put(each)
    assert [each.key for each in table.select("")] == KEYS


@pytest.mark.parametrize(
    ("namespace", "expected"), [("a", ["a/x", "a/y"]), ("a-b", ["a-b/x"]), ("a0", ["a0/x"]), ("c", [])]
)
def test_namespaces_do_not_mix(namespace: str, expected: list[str]) -> None:
    """A namespace's objects are found whatever namespaces sort beside it."""
    table = Table()
    table.fill(entry(key) for key in KEYS)
    assert [each.key for each in table.select(namespace)] == expected


def test_owners_are_an_index() -> None:
    """Dependents are found by their owner's uid, through every change and removal."""
    table = Table()
    table.put(entry("a/x", "o1"))
    table.put(entry("a/y", "o1", "o2"))
    assert [each.key for each in table.owned_by("o1")] == ["a/x", "a/y"]
    table.put(entry("a/x", "o2"))
    table.remove("a/y")
    found = {uid: [each.key for each in table.owned_by(uid)] for uid in ("o1", "o2", "o3")}
    assert found == {"o1": [], "o2": ["a/x"], "o3": []}
    assert table._keys_by_owner == {"o2": {"a/x": None}}


def test_removed_objects_are_gone() -> None:
    """A removed key is neither found nor listed."""
    table = Table()
    table.fill(entry(key) for key in KEYS)
    table.remove("a/x")
    assert (table.find("a/x"), len(table), [each.key for each in table.select("a")]) == (None, 4, ["a/y"])
