"""Rules of the descriptions of API types."""

import tomllib
from importlib import resources

import pytest

from podscaler.api.schema import descriptions, schema

FILES = sorted((resources.files("podscaler.api.schema.data") / "descriptions").iterdir(), key=lambda file: file.name)
TABLES = [(file.name, tomllib.loads(file.read_text(encoding="utf-8"))) for file in FILES]
NOT_MESSAGES = {"common", "meta/v1.Patch"}


@pytest.mark.parametrize(("file", "table"), TABLES, ids=[name for name, _ in TABLES])
def test_only_what_exists_is_described(file, table):
    """Every text belongs to a message or field of the schema."""
    del file
    strays = [
        f"{message}.{field}"
        for message, texts in table.items()
        if message not in NOT_MESSAGES
        for field in texts
        if field != "_" and schema.find_field(message, field) is None
    ]
    assert strays == []
    assert [message for message in table if message not in NOT_MESSAGES and schema.find_message(message) is None] == []


def test_no_message_is_described_twice():
    """A message's texts stand in one file."""
    names = [message for _, table in TABLES for message in table]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "prefix",
    [
        "autoscaling/v1",
        "autoscaling/v2",
        "autoscaling/v2beta2",
        "autoscaling/v2beta1",
        "autoscaling/v2alpha1",
        "extensions/v1beta1",
    ],
)
def test_autoscaling_is_described_completely(prefix):
    """`kubectl explain hpa --recursive` has something to say about every field."""
    silent = [
        f"{message.name}.{field.name}"
        for message in schema.messages_of(prefix)
        for field in message.json_fields()
        if not descriptions.of_field(message.name, field.name)
    ]
    assert silent == []
    assert [message.name for message in schema.messages_of(prefix) if not descriptions.of_message(message.name)] == []


@pytest.mark.parametrize(
    "message", ["meta/v1.ObjectMeta", "meta/v1.ListMeta", "meta/v1.LabelSelector", "core/v1.Container"]
)
def test_the_most_used_types_are_described_completely(message):
    """Nothing of metadata, selectors and containers is left without a word (three alpha fields aside)."""
    silent = [f.name for f in schema.get_message(message).json_fields() if not descriptions.of_field(message, f.name)]
    assert set(silent) <= {"restartPolicyRules"}


def test_a_field_of_all_objects_has_a_common_text():
    """`metadata` and `kind` need not be described for each kind."""
    assert descriptions.of_field("storage/v1.StorageClass", "metadata") == descriptions.of_field(
        "core/v1.Pod", "metadata"
    )
    assert descriptions.of_field("storage/v1.StorageClass", "provisioner") == ""
