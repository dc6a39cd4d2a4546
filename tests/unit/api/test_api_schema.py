"""Rules of the table of API types."""

import json
from importlib import resources
from pathlib import Path

import pytest

from podscaler.api.schema import schema

SPEC = Path(__file__).parents[3] / "docs" / "spec" / "protobuf_fields.json"
PREFIXES = sorted(
    file.name.removesuffix(".json").rpartition("_")[0] + "/" + file.name.removesuffix(".json").rpartition("_")[2]
    for file in (resources.files("podscaler.api.schema.data") / "types").iterdir()
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_type_that_is_referred_to_exists(prefix):
    """No message of any package refers to one that the table lacks."""
    names = [message.name for message in schema.messages_of(prefix)]
    assert set(names) <= schema.reachable(names)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_names_and_numbers_are_unique_in_a_message(prefix):
    """Two fields of one message never share a JSON name or a protobuf number."""
    for message in schema.messages_of(prefix):
        names = [field.name for field in message.json_fields()]
        numbers = [field.number for field in message.fields if field.number]
        assert (len(names), len(numbers)) == (len(set(names)), len(set(numbers))), message.name


def test_field_numbers_are_those_of_the_specification():
    """The generated table agrees with an independent list of field numbers (which calls two types differently)."""
    differing = [
        (name, wanted["name"])
        for name, fields in json.loads(SPEC.read_text()).items()
        for wanted in fields
        if wanted not in [wire_facts(field) for field in schema.get_message(name).fields]
    ]
    assert differing == [
        ("authentication/v1.TokenRequestSpec", "attestations"),
        ("authorization/v1.SubjectAccessReviewSpec", "extra"),
    ]


def wire_facts(field):
    """What the specification says of a field."""
    facts = {"number": field.number, "name": field.name, "type": field.type}
    return facts | ({"repeated": True} if field.repeated else {}) | ({"map": True} if field.map else {})


def test_inlined_fields_stand_in_the_parent():
    """JSON knows no volumeSource: its fields stand beside the volume's name."""
    names = [field.name for field in schema.get_message("core/v1.Volume").json_fields()]
    assert names[:3] == ["name", "hostPath", "emptyDir"]
    assert schema.find_field("core/v1.Probe", "httpGet").type == "core/v1.HTTPGetAction"


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("v1", "Pod", "core/v1.Pod"),
        ("v1", "Status", "meta/v1.Status"),
        ("apps/v1", "Deployment", "apps/v1.Deployment"),
        ("policy/v1", "DeleteOptions", "meta/v1.DeleteOptions"),
        ("events.k8s.io/v1", "Event", "events/v1.Event"),
        ("rbac.authorization.k8s.io/v1", "Role", "rbac/v1.Role"),
        ("custom.metrics.k8s.io/v1beta2", "MetricValueList", "custom_metrics/v1beta2.MetricValueList"),
        ("metrics.k8s.io/v1beta1", "PodMetrics", "metrics/v1beta1.PodMetrics"),
        ("example.com/v1", "Widget", None),
        ("apps/v1", "Widget", None),
        ("", "Pod", None),
        ("a\x00b/v1", "Pod", None),
        ("../../apps/v1", "Deployment", None),
    ],
)
def test_kinds_are_found_by_their_client_s_names(api_version, kind, message):
    """Groups with long names and the options kinds lead to the right Go package."""
    assert schema.find_kind(api_version, kind) == message


@pytest.mark.parametrize("name", ["apps/v1.Widget", "../v1.Pod", "..\x00/v1.Pod", "a/b/c.d", "Pod", ""])
def test_unknown_messages_are_not_found(name):
    """A name that the table lacks is None, or a KeyError for who insists."""
    assert schema.find_message(name) is None
    with pytest.raises(KeyError):
        schema.get_message(name)
