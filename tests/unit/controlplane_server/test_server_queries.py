"""Query parameters: how options are read, and which values are refused."""

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import query_options
from podscaler.controlplane.apiserver.http.query_options import Query, WriteOptions
from podscaler.controlplane.storage.options import DeleteOptions, ListOptions, Preconditions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", ListOptions(), id="nothing"),
        pytest.param(
            "labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&limit=5&continue=t",
            ListOptions(label_selector="a=b", field_selector="metadata.name=x", limit=5, continue_token="t"),
            id="selection and page",
        ),
        pytest.param(
            "resourceVersion=7&resourceVersionMatch=Exact&sendInitialEvents=false",
            ListOptions(resource_version="7", resource_version_match="Exact", send_initial_events=False),
            id="version",
        ),
        pytest.param("limit=2&limit=3", ListOptions(limit=2), id="the first value counts"),
        pytest.param("limit=2;x&continue=%zz", ListOptions(), id="what cannot be read is not there"),
        pytest.param("sendInitialEvents", ListOptions(send_initial_events=True), id="a flag without a value"),
    ],
)
def test_list_options(text: str, expected: ListOptions) -> None:
    """List options come from the query as sent."""
    assert query_options.list_options(Query(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("limit=x", 'strconv.ParseInt: parsing "x": invalid syntax', id="no number"),
        pytest.param("limit=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax', id="a fraction"),
        pytest.param("limit=٣", 'strconv.ParseInt: parsing "٣": invalid syntax', id="a digit of another script"),
        pytest.param(
            "limit=9223372036854775808",
            'strconv.ParseInt: parsing "9223372036854775808": value out of range',
            id="2^63",
        ),
        pytest.param(f"limit={'9' * 30}", f'strconv.ParseInt: parsing "{"9" * 30}": value out of range', id="huge"),
    ],
)
def test_bad_numbers(text: str, message: str) -> None:
    """A number that is none is a 400 in the words of Go's parser."""
    with pytest.raises(StatusError) as raised:
        query_options.list_options(Query(text))
    assert (raised.value.code, raised.value.message) == (400, message)


def test_int64_bounds() -> None:
    """The smallest and the largest int64 are numbers."""
    assert [Query(f"n={n}").number("n") for n in (-(2**63), 2**63 - 1)] == [-(2**63), 2**63 - 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a=1", WriteOptions(), id="other parameters"),
        pytest.param(
            "dryRun=All&fieldValidation=Strict&fieldManager=me&force=true",
            WriteOptions(True, "Strict", "me", True),
            id="all",
        ),
    ],
)
def test_write_options(text: str, expected: WriteOptions) -> None:
    """Options of writes; unknown fields are warned of unless the client says otherwise."""
    assert query_options.write_options(Query(text), "PatchOptions") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("dryRun=Some", 'dryRun: Unsupported value: ["Some"]: supported values: "All"', id="dry run"),
        pytest.param("dryRun=", 'dryRun: Unsupported value: [""]: supported values: "All"', id="empty dry run"),
        pytest.param(
            "fieldValidation=x",
            'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"',
            id="field validation",
        ),
        pytest.param(f"fieldManager={'x' * 129}", "fieldManager: Too long: may not be more than 128 bytes", id="long"),
        pytest.param(
            "fieldManager=a%01",
            r'fieldManager: Invalid value: "a\x01": invalid character U+0001 (at position 1)',
            id="unprintable manager",
        ),
    ],
)
def test_bad_write_options(text: str, message: str) -> None:
    """Values that do not exist are a 422 that names the options."""
    with pytest.raises(StatusError) as raised:
        query_options.write_options(Query(text), "CreateOptions")
    assert (raised.value.code, raised.value.message) == (
        422,
        f'CreateOptions.meta.k8s.io "" is invalid: {message}',
    )


@pytest.mark.parametrize(
    ("text", "body", "expected"),
    [
        pytest.param("", {}, DeleteOptions(), id="nothing"),
        pytest.param(
            "gracePeriodSeconds=0&propagationPolicy=Foreground&dryRun=All",
            {},
            DeleteOptions(grace_period_s=0, propagation="Foreground", dry_run=True),
            id="by query",
        ),
        pytest.param(
            "gracePeriodSeconds=0",
            {"kind": "DeleteOptions", "preconditions": {"uid": "u", "resourceVersion": "3"}, "orphanDependents": True},
            DeleteOptions(orphan_dependents=True, preconditions=Preconditions("u", "3")),
            id="a body takes the place of the query",
        ),
    ],
)
def test_delete_options(text: str, body: dict[str, object], expected: DeleteOptions) -> None:
    """Delete options come from the body, else from the query."""
    assert query_options.delete_options(Query(text), body) == expected


def test_too_many_parameters() -> None:
    """A query of thousands of parameters is refused, not read."""
    with pytest.raises(StatusError) as raised:
        Query("&".join(["a=1"] * 2000))
    assert raised.value.code == 400
