"""Escaping of URLs as Go does it, and what Go says of addresses."""

from collections.abc import Callable

import pytest

from podscaler.base.errors import StatusError
from podscaler.kube.client import urls


def test_query() -> None:
    """Alphabetical, space as plus, comma, equals sign and parentheses escaped; empty values are not sent."""
    parameters = [("metricLabelSelector", ""), ("labelSelector", "a=1,k in (x,y)"), ("continue", "b/c")]
    assert urls.query(parameters) == "continue=b%2Fc&labelSelector=a%3D1%2Ck+in+%28x%2Cy%29"


def test_path() -> None:
    """A star is escaped, a colon is not, and empty segments are left out."""
    assert urls.path("apis", "", "v1", "pods", "*", "a:b c") == "/apis/v1/pods/%2A/a:b%20c"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("../../victim/deployments/v", "may not contain '/'"),
        ("..", "may not be '..'"),
        ("a%2Fb", "may not contain '%'"),
    ],
)
@pytest.mark.parametrize(
    ("check", "called"),
    [(urls.object_name, "resource name"), (urls.resource, "resource"), (urls.subresource, "subresource")],
    ids=["object", "resource", "subresource"],
)
def test_names_that_are_no_segment_are_refused(name: str, fault: str, check: Callable[[str], str], called: str) -> None:
    """The name of an object, or of a metric, never leads to another one, in the words of client-go."""
    with pytest.raises(StatusError) as caught:
        check(name)
    assert (caught.value.message, caught.value.code) == (f'invalid {called} "{name}": [{fault}]', 0)


def test_group_version() -> None:
    """The core group has a root of its own."""
    assert (urls.group_version("", "v1"), urls.group_version("apps", "v1")) == ("/api/v1", "/apis/apps/v1")


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://h", ""),
        ("https://h:", ""),
        ("https://h:080/x:y", ""),
        ("https://h:65535", ""),
        ("https://a:b@h:1", ""),
        ("https://[::1]:443", ""),
        ("https://[::1]", ""),
        ("https://h:65536", "dial tcp: address 65536: invalid port"),
        ("https://h:70000/x", "dial tcp: address 70000: invalid port"),
        ("https://h:99999999999999999999", "dial tcp: address 99999999999999999999: invalid port"),
        ("https://h:-1", 'parse "https://h:-1": invalid port ":-1" after host'),
        ("https://h:1_0", 'parse "https://h:1_0": invalid port ":1_0" after host'),
        ("https://h:+80", 'parse "https://h:+80": invalid port ":+80" after host'),
        ("https://h: 80", 'parse "https://h: 80": invalid port ": 80" after host'),
        ("https://h:\uff11", 'parse "https://h:\uff11": invalid port ":\uff11" after host'),
        ("https://h:http", 'parse "https://h:http": invalid port ":http" after host'),
        ("https://[::1]:x", 'parse "https://[::1]:x": invalid port ":x" after host'),
        ("https://::1:443", 'parse "https://::1:443": invalid port "::1:443" after host'),
        ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
        ("https://h%41:1", 'parse "https://h%41:1": invalid URL escape "%41"'),
        ("https://h%zz:1", 'parse "https://h%zz:1": invalid URL escape "%zz"'),
        ("https://h x:1", 'parse "https://h x:1": invalid character " " in host name'),
        ("https://h/\x01", r'parse "https://h/\x01": net/url: invalid control character in URL'),
    ],
)
def test_addresses(url: str, fault: str) -> None:
    """Ports are decimal digits up to 65535, leading zeros and none at all allowed (seen with Go 1.26)."""
    assert urls.address_error(url) == fault
