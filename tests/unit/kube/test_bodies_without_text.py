"""Bodies that are not UTF-8 are errors of the server, which clients retry, not defects that end an informer."""

import msgspec
import pytest

from podscaler.base.errors import StatusError
from podscaler.kube.client import typed_responses
from podscaler.kube.informers import watch_events
from podscaler.kube.transport.transport import Response

BODY = b'{"kind": "\xff", "metadata": {"resourceVersion": "\xff"}, "items": []}'


def test_lists_and_bookmarks() -> None:
    """A list is a StatusError; an object has no version, and ends nothing."""
    with pytest.raises(StatusError, match="unable to decode a list"):
        watch_events.page(b'{"metadata": {"resourceVersion": "\xff"}}')
    assert watch_events.version_of(msgspec.Raw(BODY)) == ""
    assert not watch_events.ends_initial_events(msgspec.Raw(BODY))


def test_typed_responses() -> None:
    """A response whose kind cannot be read is a StatusError."""
    with pytest.raises(StatusError, match="couldn't get version/kind"):
        typed_responses.with_kind(Response(200, {}, BODY), msgspec.json.Decoder(dict))
