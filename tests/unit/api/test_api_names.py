"""Name rules: each function's fault texts, at the edges of its lengths and characters."""

import pytest

from podscaler.api.machinery import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("web", []),
        (".", ["may not be '.'"]),
        ("..", ["may not be '..'"]),
        ("a/b", ["may not contain '/'"]),
        ("a%/", ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_path_segments(text: str, faults: list[str]) -> None:
    """A path segment is neither dot nor dots and has no slash and no percent sign."""
    assert names.path_segment_errors(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a" * 63, []),
        ("a" * 64, ["must be no more than 63 characters"]),
        ("A" * 64, ["must be no more than 63 characters", LABEL]),
        ("", [LABEL]),
        ("-a", [LABEL]),
        ("a.b", ["must not contain dots"]),
        ("a\n", [LABEL]),
    ],
)
def test_dns_labels(text: str, faults: list[str]) -> None:
    """A DNS label has at most 63 lower case characters, digits and inner dashes."""
    assert names.dns_label_errors(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a.b-c.d", []),
        ("a" * 253, []),
        ("a" * 254, ["must be no more than 253 characters"]),
        ("X_y", [SUBDOMAIN]),
        ("a..b", [SUBDOMAIN]),
        ("a.", [SUBDOMAIN]),
    ],
)
def test_dns_subdomains(text: str, faults: list[str]) -> None:
    """A DNS subdomain is a dotted row of DNS labels of at most 253 bytes."""
    assert names.dns_subdomain_errors(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("app.kubernetes.io/name", []),
        ("a" * 63, []),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("", ["name part must be non-empty", f"name part {QUALIFIED}"]),
        ("-a", [f"name part {QUALIFIED}"]),
        ("/a", ["prefix part must be non-empty"]),
        ("A/-", [f"prefix part {SUBDOMAIN}", f"name part {QUALIFIED}"]),
        ("a" * 254 + "/a", ["prefix part must be no more than 253 bytes"]),
        (
            "a/b/c",
            [
                f"a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/'"
                " (e.g. 'example.com/MyName')"
            ],
        ),
    ],
)
def test_label_keys(text: str, faults: list[str]) -> None:
    """A label key is a name of at most 63 bytes behind an optional subdomain; prefix faults come first."""
    assert names.label_key_errors(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", []),
        ("A_b.c-1", []),
        ("a" * 64, ["must be no more than 63 bytes"]),
        ("é" * 32, ["must be no more than 63 bytes", VALUE]),
        ("-b", [VALUE]),
        ("a b", [VALUE]),
    ],
)
def test_label_values(text: str, faults: list[str]) -> None:
    """A label value is empty or at most 63 bytes of a name."""
    assert names.label_value_errors(text) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("cpu", []),
        ("hugepages-2Mi", []),
        ("nvidia.com/gpu", []),
        ("gpu", ["must be a standard resource type or fully qualified", "must be a standard resource for containers"]),
        ("pods", ["must be a standard resource for containers"]),
        ("requests.example.com/a", ["doesn't follow extended resource name standard"]),
        ("-x", [f"name part {QUALIFIED}", "must be a standard resource for containers"]),
    ],
)
def test_container_resource_names(text: str, faults: list[str]) -> None:
    """A container resource is a standard one, or a qualified name with a prefix."""
    assert names.container_resource_name_errors(text) == faults
