"""Entries: bytes ready to be sent, and what is looked up often."""

from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.entries import Entry


def test_entry_knows_what_indexes_need() -> None:
    """Key, uid, labels and owners come out of the body."""
    obj = {
        "kind": "Gadget",
        "metadata": {
            "name": "g",
            "namespace": "ns",
            "uid": "u1",
            "labels": {"app": "x"},
            "ownerReferences": [{"uid": "o1", "name": "a"}, {"uid": "o2", "name": "b"}],
        },
    }
    entry = entries.from_object("gadgets", obj, 7)
    found = (entry.key, entry.name, entry.namespace, entry.revision, entry.uid, entry.labels, entry.owner_uids)
    assert found == ("ns/g", "g", "ns", 7, "u1", {"app": "x"}, ("o1", "o2"))


def test_body_has_upstreams_order_and_the_revision() -> None:
    """Metadata is in upstream's order with the resourceVersion inside; unknown parts follow."""
    obj = {"metadata": {"labels": {}, "zeal": 1, "uid": "u", "namespace": "ns", "name": "g"}, "spec": {"b": 1, "a": 2}}
    entry = entries.from_object("gadgets", obj, 7)
    expected = (
        '{"metadata":{"name":"g","namespace":"ns","uid":"u","resourceVersion":"7","labels":{},"zeal":1},'
        '"spec":{"b":1,"a":2}}'
    )
    assert entry.body.decode() == expected


def test_body_is_escaped_as_go_does() -> None:
    """What could end a script in HTML is escaped; decoding gives the text back."""
    text = "<a> & \u2028 \u2029 ä"
    entry = entries.from_object("gadgets", {"metadata": {"name": "g"}, "x": text}, 0)
    assert entry.body == b'{"metadata":{"name":"g"},"x":"\\u003ca\\u003e \\u0026 \\u2028 \\u2029 \xc3\xa4"}'
    assert entry.decode()["x"] == text


def test_decode_gives_copies() -> None:
    """A decoded object is the caller's own."""
    entry = entries.from_object("gadgets", {"metadata": {"name": "g"}, "spec": {"a": [1]}}, 1)
    entry.decode()["spec"]["a"].append(2)
    assert entry.decode()["spec"] == {"a": [1]}


def test_revision_zero_shows_none() -> None:
    """A dry run's object has no resourceVersion."""
    entry = entries.from_object("gadgets", {"metadata": {"name": "g", "resourceVersion": "4"}}, 0)
    assert entry.decode() == {"metadata": {"name": "g"}}


def test_at_revision_changes_nothing_else() -> None:
    """A deleted object is shown as it was, with the deletion's revision."""
    entry = Entry("gadgets", "", "g", 3, b'{"metadata":{"name":"g","resourceVersion":"3"},"spec":{"a":1}}')
    shown = entries.at_revision(entry, 9)
    assert shown.decode() == {"metadata": {"name": "g", "resourceVersion": "9"}, "spec": {"a": 1}}
