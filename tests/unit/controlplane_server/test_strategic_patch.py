"""Strategic merge patch: each directive, and the order of merged lists."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import strategic_merge
from podscaler.controlplane.apiserver.handlers.strategic_merge import MessageSchema

Object = dict[str, Any]


@dataclass(frozen=True)
class FakeSchema(MessageSchema):
    """A schema in which lists merge by the keys given, whatever the depth."""

    message: str = "v1.Thing"
    keys: dict[str, str] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()

    def merges_list(self, key: str) -> bool:
        """Lists merge unless they are called `atomic`."""
        return key != "atomic"

    def merges_object(self, key: str) -> bool:
        """Objects merge unless listed as replaced."""
        return key not in self.replaced

    def merge_key(self, key: str) -> str:
        """The key of the list."""
        return self.keys.get(key, "")

    def member(self, key: str) -> "FakeSchema":
        """The same everywhere."""
        del key
        return self


SCHEMA = FakeSchema(keys={"containers": "name", "env": "name", "owners": "uid"}, replaced=("whole",))


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="a scalar is replaced"),
        pytest.param({"a": 1}, {"a": None, "b": None}, {}, id="null removes, and is not taken over"),
        pytest.param({"m": {"x": "1"}}, {"m": {"y": "2"}}, {"m": {"x": "1", "y": "2"}}, id="objects merge"),
        pytest.param({"whole": {"x": 1}}, {"whole": {"y": 2}}, {"whole": {"y": 2}}, id="objects declared atomic"),
        pytest.param({"atomic": [1, 2]}, {"atomic": [3]}, {"atomic": [3]}, id="lists declared atomic"),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="another type replaces"),
        pytest.param({"s": ["a", "b"]}, {"s": ["c", "a"]}, {"s": ["c", "a", "b"]}, id="scalars are a set"),
        pytest.param(
            {"s": ["a", "b", "c"]}, {"$deleteFromPrimitiveList/s": ["b"]}, {"s": ["a", "c"]}, id="scalars taken out"
        ),
        pytest.param({}, {"$deleteFromPrimitiveList/s": ["b"]}, {}, id="scalars taken out of nothing"),
        pytest.param(
            {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
            {"containers": [{"name": "a", "image": "2"}]},
            {"containers": [{"name": "a", "image": "2"}, {"name": "b"}]},
            id="elements merge by key",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "b"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
            id="a new element comes first",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b"}]},
            id="an element is deleted",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"$patch": "replace"}, {"name": "c"}]},
            {"containers": [{"name": "c"}]},
            id="a list is replaced",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "a", "x": 1}]},
            {"containers": [{"name": "b"}, {"name": "c"}, {"name": "a", "x": 1}]},
            id="a list is ordered, the server's own element keeps its place",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
            id="a list is only ordered",
        ),
        pytest.param(
            {},
            {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "a"}, {"name": "b"}][::-1],
            },
            {"containers": [{"name": "b"}, {"name": "a"}]},
            id="a list is new and ordered",
        ),
        pytest.param({}, {"$setElementOrder/containers": [{"name": "b"}]}, {}, id="an order of nothing"),
        pytest.param(
            {"s": ["a", "b", "z"]},
            {"$setElementOrder/s": ["b", "a"], "s": ["a"]},
            {"s": ["b", "a", "z"]},
            id="scalars are ordered",
        ),
        pytest.param(
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="only the keys to retain stay",
        ),
        pytest.param(
            {"m": {"a": "1"}}, {"m": {"$patch": "replace", "b": "2"}}, {"m": {"b": "2"}}, id="replace an object"
        ),
        pytest.param({"m": {"a": "1"}}, {"m": {"$patch": "delete"}}, {"m": {}}, id="empty an object"),
        pytest.param({}, {"m": {"$patch": "replace", "b": "2"}}, {"m": {}}, id="a directive for what is not there"),
        pytest.param(
            {},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": None}},
            {"strategy": {"type": "Recreate"}},
            id="directives and nulls of a new object vanish",
        ),
        pytest.param({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="a null of the original is replaced"),
    ],
)
def test_merge(original: Object, patch: Object, expected: Object) -> None:
    """The patched object is what the API server makes of it."""
    before = (repr(original), repr(patch))
    assert strategic_merge.apply_strategic_merge(original, patch, SCHEMA) == expected
    assert (repr(original), repr(patch)) == before


@pytest.mark.parametrize(
    ("patch", "code", "text"),
    [
        pytest.param({"$patch": "x"}, 500, "unknown patch type: x in map: map[$patch:x]", id="an unknown directive"),
        pytest.param(
            {"containers": [{"image": "1"}]},
            500,
            "map: map[image:1] does not contain declared merge key: name",
            id="an element without its key",
        ),
        pytest.param({"$retainKeys": "a"}, 400, "invalid patch format of retainKeys", id="retainKeys is no list"),
        pytest.param(
            {"$retainKeys": ["a"], "b": 1},
            422,
            "the server rejected our request due to an error in our request",
            id="the patch has a key that it does not retain",
        ),
        pytest.param(
            {"$setElementOrder/containers": "a"},
            500,
            "expected a []interface {}, but received a string",
            id="the order is no list",
        ),
        pytest.param(
            {"$setElementOrder/nulls": ["a"]},
            500,
            "expected a []interface {}, but received a %!s(<nil>)",
            id="an order of a list that is null",
        ),
        pytest.param(
            {"$setElementOrder/none": ["a"]},
            500,
            "no elements in any of the given slices",
            id="an order of an empty list",
        ),
        pytest.param(
            {"containers": [5]},
            500,
            "list element types are not identical: [[map[name:a]] [5]]",
            id="elements of two types",
        ),
        pytest.param({"s": [None]}, 500, "list element types are not identical: [[a] [<nil>]]", id="null among texts"),
        pytest.param(
            {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]},
            500,
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
            id="the order does not know an element",
        ),
        pytest.param(
            {"$deleteFromPrimitiveList/s": "a"}, 400, "invalid patch format of primitive list", id="values are no list"
        ),
        pytest.param(
            {"none": [["a"]]},
            422,
            "the server rejected our request due to an error in our request",
            id="a list of lists",
        ),
    ],
)
def test_errors(patch: Object, code: int, text: str) -> None:
    """A patch that makes no sense is an error with upstream's text."""
    with pytest.raises(StatusError) as raised:
        strategic_merge.apply_strategic_merge(
            {"containers": [{"name": "a"}], "s": ["a"], "nulls": None, "none": []}, patch, SCHEMA
        )
    assert (raised.value.code, raised.value.message) == (code, text)
