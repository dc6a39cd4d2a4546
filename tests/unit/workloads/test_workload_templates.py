"""Pod templates and their hash."""

import pytest

from podscaler.controlplane.controllers.framework import templates
from podscaler.testing import workloads as build

TEMPLATE = build.pod_template({"app": "web"})


def test_a_hash_is_stable():
    """Running `up` again must not roll anything out: this very value is relied on."""
    assert templates.template_hash(TEMPLATE) == templates.template_hash(build.pod_template({"app": "web"}))
    assert templates.template_hash({"spec": {}}) == "7dfd794bb4"


def test_a_hash_spells_no_words():
    """Upstream's alphabet: no vowels, no look-alikes."""
    assert set(templates.template_hash(TEMPLATE)) <= set("bcdfghjklmnpqrstvwxz2456789")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(build.pod_template({"app": "web"}, image="example.com/app:2"), id="another image"),
        pytest.param(build.pod_template({"app": "web", "tier": "front"}), id="another label"),
        pytest.param(
            {**TEMPLATE, "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}}, id="an annotation"
        ),
    ],
)
def test_another_template_has_another_hash(other):
    """A change of the template is a new revision."""
    assert templates.template_hash(other) != templates.template_hash(TEMPLATE)
    assert not templates.are_equal(other, TEMPLATE)


def test_a_collision_changes_the_hash():
    """The count of collisions salts it."""
    assert len({templates.template_hash(TEMPLATE, count) for count in range(4)}) == 4


def test_the_hash_label_makes_no_difference():
    """A ReplicaSet's template is the Deployment's with the hash added."""
    hashed = build.pod_template({"app": "web", "pod-template-hash": "abc"})
    assert templates.are_equal(hashed, TEMPLATE)
    assert templates.template_hash(hashed) == templates.template_hash(TEMPLATE)


def test_a_pod_is_made_of_the_template():
    """Labels, annotations, finalizers and spec are the template's; the owner controls it."""
    owner = build.replica_set("web-x")
    template = {
        "metadata": {
            "labels": {"app": "web"},
            "annotations": {"a": "b"},
            "finalizers": ["example.com/f"],
            "name": "no",
        },
        "spec": {"containers": []},
    }
    assert templates.pod_from(template, owner) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "web-x-",
            "namespace": "default",
            "labels": {"app": "web"},
            "annotations": {"a": "b"},
            "finalizers": ["example.com/f"],
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web-x",
                    "uid": "uid-web-x",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"containers": []},
    }
