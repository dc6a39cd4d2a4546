"""Content negotiation: which form an Accept header leads to."""

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import negotiation
from podscaler.controlplane.apiserver.http.negotiation import PLAIN_JSON, Form

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        pytest.param("", PLAIN_JSON, id="no header"),
        pytest.param("*/*", PLAIN_JSON, id="anything"),
        pytest.param("application/json", PLAIN_JSON, id="JSON"),
        pytest.param("application/yaml", Form("yaml"), id="YAML"),
        pytest.param(f"{PROTOBUF},application/json", Form("protobuf"), id="protobuf or JSON"),
        pytest.param(f"{PROTOBUF};stream=watch,application/json", Form("protobuf"), id="a stream of protobuf"),
        pytest.param(f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}", Form("json", "table"), id="no protobuf Table"),
        pytest.param(
            f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Form("protobuf", "partial"), id="bare metadata"
        ),
        pytest.param("application/xml, application/json;q=0.5", PLAIN_JSON, id="another type first"),
        pytest.param("application/json;q=0.2,application/yaml;q=0.7", Form("yaml"), id="by quality"),
        pytest.param("application/yaml;q=0,application/json", PLAIN_JSON, id="quality zero is an API error"),
        pytest.param("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", PLAIN_JSON, id="a browser"),
        pytest.param(KUBECTL, Form("json", "table", "v1"), id="kubectl get"),
        pytest.param("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Form("json", "table", "v1beta1"), id="old"),
        pytest.param(
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", Form("json", "partial"), id="metadata"
        ),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
            Form("json", "partial_list"),
            id="metadata of a list",
        ),
        pytest.param(
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json", PLAIN_JSON, id="an unknown version"
        ),
        pytest.param("application/json;stream=watch", PLAIN_JSON, id="a stream of JSON"),
        pytest.param("application/json; charset=utf-8; q=x", PLAIN_JSON, id="a quality that is no number"),
    ],
)
def test_resource_form(accept: str, form: Form) -> None:
    """The first clause that can be satisfied wins."""
    assert negotiation.resource_form(accept, can_stream=True) == form


@pytest.mark.parametrize(
    ("accept", "can_stream", "text"),
    [
        pytest.param(
            "image/png",
            False,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
            id="no type of ours",
        ),
        pytest.param(
            "image/png",
            True,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch",
            id="no type of ours, where there are streams",
        ),
        pytest.param(
            "application/json;as=Table;v=v1;g=example.com",
            False,
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
            id="an unknown transformation",
        ),
        pytest.param(
            AGGREGATED,
            False,
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
            id="discovery of a resource",
        ),
    ],
)
def test_errors(accept: str, can_stream: bool, text: str) -> None:
    """What cannot be satisfied is a 406 that says what can."""
    with pytest.raises(StatusError) as raised:
        negotiation.resource_form(accept, can_stream=can_stream)
    assert (raised.value.code, raised.value.message) == (406, text)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        pytest.param(f"{PROTOBUF},application/json", PLAIN_JSON, id="JSON instead"),
        pytest.param(
            f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            Form("protobuf", "partial_list"),
            id="metadata has protobuf",
        ),
    ],
)
def test_kinds_without_protobuf(accept: str, form: Form) -> None:
    """Custom resources have no messages, only their metadata has."""
    assert negotiation.resource_form(accept, can_stream=True, has_protobuf=False) == form


def test_kinds_without_protobuf_refuse_it() -> None:
    """Who accepts nothing but protobuf of a custom resource gets nothing."""
    with pytest.raises(StatusError) as raised:
        negotiation.resource_form(PROTOBUF, can_stream=True, has_protobuf=False)
    assert raised.value.code == 406


@pytest.mark.parametrize(
    ("accept", "aggregates", "form"),
    [
        pytest.param(AGGREGATED, True, Form("json", "discovery"), id="aggregated"),
        pytest.param(f"{AGGREGATED},application/json", False, PLAIN_JSON, id="aggregated where there is no such form"),
        pytest.param(AGGREGATED.replace("v2", "v2beta1") + ",application/json", True, PLAIN_JSON, id="an older form"),
        pytest.param(f"{AGGREGATED};profile=nopeer,application/json", True, Form("json", "discovery"), id="profile"),
        pytest.param("application/json", True, PLAIN_JSON, id="plain"),
    ],
)
def test_discovery_form(accept: str, aggregates: bool, form: Form) -> None:
    """Discovery is aggregated where asked for and possible."""
    assert negotiation.discovery_form(accept, aggregates=aggregates) == form


@pytest.mark.parametrize(
    ("is_routed", "message"),
    [
        pytest.param(True, "406: Not Acceptable\n\nAvailable representations: ", id="by the router"),
        pytest.param(False, "only the following media types are accepted: ", id="behind it"),
    ],
)
def test_who_takes_no_form_of_discovery_is_refused(is_routed: bool, message: str) -> None:
    """Upstream's router has other words than what it leads to; who names no form takes the plain one of both."""
    types = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    with pytest.raises(StatusError) as raised:
        negotiation.discovery_form("text/html", aggregates=False, is_routed=is_routed)
    assert (raised.value.code, str(raised.value)) == (406, message + types)
    assert negotiation.discovery_form("", aggregates=False, is_routed=is_routed) == PLAIN_JSON


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        pytest.param("application/yaml", Form("yaml"), id="YAML"),
        pytest.param("image/png", PLAIN_JSON, id="nothing of ours"),
        pytest.param("application/json,application/yaml", PLAIN_JSON, id="JSON first"),
        pytest.param(f"{PROTOBUF},application/json", Form("protobuf"), id="protobuf first"),
    ],
)
def test_refusal_form(accept: str, form: Form) -> None:
    """An API error is always JSON or YAML, whatever was asked for."""
    assert negotiation.error_form(accept) == form


def test_media_type() -> None:
    """Parameters and case of a Content-Type do not matter."""
    assert negotiation.media_type(" Application/JSON ; charset=utf-8") == "application/json"


def test_reviews_have_no_tables() -> None:
    """A Table alone is refused, and skipped where the client accepts something else; metadata is served."""
    with pytest.raises(StatusError, match="only the following media types are accepted"):
        negotiation.resource_form(TABLE, can_stream=False, has_tables=False)
    assert negotiation.resource_form(KUBECTL, can_stream=False, has_tables=False) == PLAIN_JSON
    metadata = TABLE.replace("Table", "PartialObjectMetadata")
    assert negotiation.resource_form(metadata, can_stream=False, has_tables=False) == Form("json", "partial")
