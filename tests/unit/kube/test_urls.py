"""Escaping of URLs as Go does it."""

from podscaler.kube import urls


def test_query() -> None:
    """Alphabetical, space as plus, comma, equals sign and parentheses escaped; empty values are not sent."""
    parameters = [("metricLabelSelector", ""), ("labelSelector", "a=1,k in (x,y)"), ("continue", "b/c")]
    assert urls.query(parameters) == "continue=b%2Fc&labelSelector=a%3D1%2Ck+in+%28x%2Cy%29"


def test_path() -> None:
    """A star is escaped, a colon is not, and empty segments are left out."""
    assert urls.path("apis", "", "v1", "pods", "*", "a:b c") == "/apis/v1/pods/%2A/a:b%20c"


def test_group_version() -> None:
    """The core group has a root of its own."""
    assert (urls.group_version("", "v1"), urls.group_version("apps", "v1")) == ("/api/v1", "/apis/apps/v1")
