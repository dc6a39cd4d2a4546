"""What means the same although it is written differently, and how differences are shown."""

from typing import Any

import pytest

from podscaler.api.resource import go_struct, semantics


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param({"limits": {"cpu": "100m"}}, {"limits": {"cpu": "0.1"}}, True, id="amount"),
        pytest.param({"limits": {"cpu": "1Gi"}}, {"limits": {"cpu": "1073741824"}}, True, id="other base"),
        pytest.param({"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, False, id="other amount"),
        pytest.param({"averageValue": "1k"}, {"averageValue": "1000"}, True, id="metric target"),
        pytest.param({"a": []}, {}, True, id="empty list"),
        pytest.param({"labels": {}}, {}, True, id="empty map"),
        pytest.param({"a": None}, {}, True, id="null"),
        pytest.param({"emptyDir": {}}, {}, False, id="empty object"),
        pytest.param({"a": 0}, {}, False, id="zero"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, False, id="order"),
        pytest.param({"env": [{"value": "1k"}]}, {"env": [{"value": "x"}]}, False, id="values that are text"),
        pytest.param({"labels": {"cpu": "1"}}, {"labels": {"cpu": "1000m"}}, False, id="labels are text"),
    ],
)
def test_same(one: dict[str, Any], other: dict[str, Any], is_same: bool) -> None:
    """Quantities go by amount, nothing equals empty, everything else counts."""
    assert [semantics.same(one, other), semantics.same(other, one)] == [is_same, is_same]


def test_copies_are_deep() -> None:
    """A copy shares nothing that can change."""
    original = {"a": [{"b": 1}]}
    copy = semantics.copied(original)
    copy["a"][0]["b"] = 2
    assert original == {"a": [{"b": 1}]}


def test_differences_show_gos_names() -> None:
    """A difference is shown as lines of the Go structs, with three lines around it."""
    old, new = {"key": "a", "tolerationSeconds": 5}, {"key": "a", "operator": "Exists"}
    assert go_struct.difference(old, new, "core/v1.Toleration") == (
        "@@ -1,7 +1,7 @@\n"
        " {\n"
        '  "Key": "a",\n'
        '- "Operator": "",\n'
        '+ "Operator": "Exists",\n'
        '  "Value": "",\n'
        '  "Effect": "",\n'
        '- "TolerationSeconds": 5\n'
        '+ "TolerationSeconds": null\n'
        " }\n"
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("core/v1.TCPSocketAction", {"Port": 0, "Host": ""}),
        ("core/v1.HostAlias", {"IP": "", "Hostnames": None}),
        ("core/v1.PodDNSConfig", {"Nameservers": None, "Searches": None, "Options": None}),
    ],
)
def test_unset_fields_are_shown(message: str, shown: dict[str, Any]) -> None:
    """Everything that is unset stands there as Go's zero."""
    assert go_struct.printed({}, message) == shown
