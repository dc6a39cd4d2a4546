"""Specs of MetricSources as an API server without validation would store them."""

import base64
from typing import Any

import pytest

from podscaler.sources import metric_source
from podscaler.sources.metric_source import SourceSpec
from podscaler.sources.protocol import InvalidSource, TLSSettings

LIST = {"address": "redis:6379", "list": "jobs"}
PEM = "-----BEGIN CERTIFICATE-----\n"


def test_a_spec_with_everything() -> None:
    """Types, defaults and TLS."""
    tls = {"caBundle": base64.b64encode(PEM.encode()).decode(), "insecureSkipVerify": True}
    reference = {"name": "password", "secretKeyRef": {"name": "login", "key": "password"}}
    found = metric_source.parse_spec({"redis": LIST, "timeoutSeconds": 9, "tls": tls, "credentials": [reference]})
    expected = SourceSpec(
        "redis",
        is_custom=False,
        settings=LIST,
        timeout_s=9.0,
        credentials=(metric_source.CredentialReference("password", metric_source.SecretKeyRef("login", "password")),),
        tls=TLSSettings(PEM, is_verified=False),
    )
    assert found == expected


def test_a_custom_type() -> None:
    """The settings are those of the inner object."""
    found = metric_source.parse_spec({"custom": {"type": "sqs", "settings": {"queue": "jobs"}}})
    assert (found.type, found.is_custom, found.settings, found.timeout_s) == ("sqs", True, {"queue": "jobs"}, 5.0)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param({}, "the spec must have exactly one of prometheus, ", id="no section"),
        pytest.param({"redis": LIST, "cron": {}}, "the spec must have exactly one of prometheus, ", id="two sections"),
        pytest.param({"redis": []}, "the spec must have exactly one of prometheus, ", id="no object"),
        pytest.param({"redis": LIST, "timeoutSeconds": 0}, "timeoutSeconds must be from 1 to 30", id="too short"),
        pytest.param({"redis": LIST, "timeoutSeconds": 31}, "timeoutSeconds must be from 1 to 30", id="too long"),
        pytest.param({"redis": LIST, "timeoutSeconds": "5"}, "the spec is invalid: ", id="a text as a timeout"),
        pytest.param({"redis": LIST, "credentials": [{}]}, "the spec is invalid: ", id="a credential without a name"),
        pytest.param(
            {"redis": LIST, "tls": {"caBundle": "!"}},
            "tls.caBundle must be certificates in PEM, in base64",
            id="no base64",
        ),
    ],
)
def test_invalid_specs(spec: dict[str, Any], text: str) -> None:
    """Each is a failure of the metric."""
    with pytest.raises(InvalidSource) as caught:
        metric_source.parse_spec(spec)
    assert str(caught.value).startswith(text)
