"""What holds for custom objects whatever their schema: pruning and defaulting settle, defaults are valid."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.crd import defaulting, pruning, structural, validation
from podscaler.api.resource.resources import Object

NAMES = st.sampled_from(["a", "b", "c"])


def _leaf(kind: str, default: Any) -> st.SearchStrategy[Object]:
    plain = st.just({"type": kind})
    return plain | st.just({"type": kind, "default": default}) | st.just({"type": kind, "nullable": True})


LEAVES = _leaf("integer", 1) | _leaf("string", "x") | _leaf("boolean", True)


def _inner(children: st.SearchStrategy[Object]) -> st.SearchStrategy[Object]:
    members = st.dictionaries(NAMES, children, max_size=3)
    objects = st.builds(lambda found: {"type": "object", "properties": found}, members)
    preserving = objects.map(lambda schema: {**schema, "x-kubernetes-preserve-unknown-fields": True})
    maps = children.map(lambda schema: {"type": "object", "additionalProperties": schema})
    lists = children.map(lambda schema: {"type": "array", "items": schema})
    return objects | preserving | maps | lists | objects.map(lambda schema: {**schema, "default": {}})


SCHEMAS = st.dictionaries(NAMES, st.recursive(LEAVES, _inner, max_leaves=8), max_size=3).map(
    lambda found: structural.parse({"type": "object", "properties": found})
)
VALUES = st.dictionaries(
    NAMES,
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text("xy", max_size=2),
        lambda children: st.lists(children, max_size=2) | st.dictionaries(NAMES, children, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


@given(SCHEMAS, VALUES)
def test_pruning_settles(schema: structural.Structural, value: Object) -> None:
    """What was pruned once has nothing more to prune."""
    pruning.prune(value, schema)
    settled = copy.deepcopy(value)
    assert pruning.prune(value, schema) == []
    assert value == settled


@given(SCHEMAS, VALUES)
def test_defaulting_settles(schema: structural.Structural, value: Object) -> None:
    """Defaults that were filled in once are not filled in again, and pruning leaves them alone."""
    pruning.prune(value, schema)
    defaulting.drop_nulls(value, schema)
    defaulting.set_defaults(value, schema)
    settled = copy.deepcopy(value)
    defaulting.set_defaults(value, schema)
    assert value == settled
    assert pruning.prune(value, schema) == []


@given(SCHEMAS)
def test_what_defaults_make_is_valid(schema: structural.Structural) -> None:
    """An empty object with all its defaults breaks nothing."""
    value: Object = {}
    defaulting.set_defaults(value, schema)
    assert validation.field_errors(value, None, schema) == []


@given(SCHEMAS, VALUES)
def test_an_object_is_always_valid_as_it_was(schema: structural.Structural, value: Object) -> None:
    """An update that changes nothing is never refused."""
    assert validation.field_errors(copy.deepcopy(value), value, schema) == []
