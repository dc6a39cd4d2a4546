"""Who may read /metrics, as the API server says: what is asked, how long an answer counts, what is refused."""

import asyncio
from typing import Any

import msgspec
import pytest

from podscaler.kube.client.client import Client
from podscaler.kube.serving import delegated_access
from podscaler.kube.serving.delegated_access import (
    UNAUTHORIZED,
    UNREVIEWED,
    AccessAttributes,
    AccessError,
    DelegatedAccess,
    ReviewedUser,
)
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.clock import VirtualClock
from podscaler.testing.cluster import refusal
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

IDENTITY, ACCESS = delegated_access.AUTHENTICATION_REVIEWS, delegated_access.ACCESS_REVIEWS
PROMETHEUS = {"username": "system:serviceaccount:monitoring:prometheus", "uid": "1", "groups": ["a"]}
USERS: dict[str, Any] = {"good": PROMETHEUS, "poor": {"username": "bob"}, "root": {"groups": ["system:masters"]}}
WHAT = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}


class World:
    """An API server that knows three tokens, and lets Prometheus read."""

    def __init__(self) -> None:
        self.transport = ScriptedTransport()
        self.transport.on("POST", IDENTITY, self._identity)
        self.transport.on("POST", ACCESS, self._access)
        self.clock = VirtualClock()
        self.access = DelegatedAccess(Client(self.transport, self.clock), self.clock)

    def _identity(self, request: Request) -> Response:
        user = USERS.get(self.spec(request)["token"])
        return json_answer({"status": {"authenticated": True, "user": user} if user else {"error": "unknown"}}, 201)

    def _access(self, request: Request) -> Response:
        is_allowed = self.spec(request)["user"] == PROMETHEUS["username"]
        reason = "" if is_allowed else "nobody said so"
        return json_answer({"status": {"allowed": is_allowed, "reason": reason}}, 201)

    @staticmethod
    def spec(request: Request) -> dict[str, Any]:
        """What a review asks."""
        found: dict[str, Any] = msgspec.json.decode(request.body or b"{}")["spec"]
        return found

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What all reviews asked."""
        return [self.spec(request) for request in self.transport.requests]

    async def get(self, authorization: str = "") -> AccessError | None:
        """Ask for the metrics."""
        return await self.access.check(authorization, "get", "/metrics")


@pytest.fixture
def world() -> World:
    """See the class."""
    return World()


def forbidden(user: str) -> AccessError:
    """What the API server refuses."""
    return AccessError(403, "Forbidden", f'forbidden: User "{user}" cannot get path "/metrics": nobody said so')


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        ("Bearer good", None),
        ("bearer good", None),
        ("Bearer root", None),
        ("Bearer poor", forbidden("bob")),
        ("Bearer bad", UNAUTHORIZED),
        ("Bearer \udcff\udcfe", UNAUTHORIZED),
        ("Bearer b\u00e4d", UNAUTHORIZED),
        ("", forbidden("system:anonymous")),
        ("Bearer ", forbidden("system:anonymous")),
        ("Basic Z29vZDpnb29k", forbidden("system:anonymous")),
    ],
    ids=[
        "allowed",
        "lower case",
        "of system:masters",
        "not allowed",
        "unknown",
        "bytes that are not UTF-8",
        "not ASCII",
        "none",
        "empty",
        "no token",
    ],
)
async def test_who_may_read(world: World, authorization: str, expected: AccessError | None) -> None:
    """A token that nobody has is refused, everyone else is who he is, or anonymous."""
    assert await world.get(authorization) == expected


async def test_what_is_asked(world: World) -> None:
    """Who the token belongs to, then what that user may do, with all that is known of him."""
    await world.get("Bearer good")
    who = {"user": PROMETHEUS["username"], "uid": "1", "groups": ["a", "system:authenticated"], "extra": {}}
    assert world.asked == [{"token": "good"}, who | WHAT]


async def test_masters_are_not_asked_about(world: World) -> None:
    """As upstream has it."""
    await world.get("Bearer root")
    assert world.asked == [{"token": "root"}]


@pytest.mark.parametrize("authorization", ["Bearer good", "Bearer poor", "Bearer bad", ""])
async def test_answers_count_for_ten_seconds(world: World, authorization: str) -> None:
    """Allowed or not, nothing is asked again before."""
    first = await world.get(authorization)
    asked = len(world.asked)
    await world.clock.advance(9.9)
    assert (await world.get(authorization), len(world.asked)) == (first, asked)
    await world.clock.advance(0.1)
    assert (await world.get(authorization), len(world.asked)) == (first, 2 * asked)


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        (IDENTITY, refusal(403, "Forbidden", "tokenreviews is forbidden")),
        (ACCESS, refusal(403, "Forbidden", "subjectaccessreviews is forbidden")),
        (IDENTITY, json_answer({"status": []}, 201)),
        (ACCESS, TransportFailure("connection refused")),
        (IDENTITY, Response(201, {}, b'{"status": {"authenticated": true, "user": {"username": "\xff"}}}')),
        (ACCESS, Response(201, {}, b'{"status": {"allowed": false, "reason": "\xff"}}')),
    ],
    ids=[
        "no token reviews",
        "no access reviews",
        "nonsense",
        "no server",
        "a user not in UTF-8",
        "a reason not in UTF-8",
    ],
)
async def test_nobody_is_let_in_unasked(
    world: World, caplog: pytest.LogCaptureFixture, path: str, reply: Response | TransportFailure
) -> None:
    """What fails is a refusal, is logged without the token, and is not remembered."""
    world.transport.on("POST", path, reply)
    assert await world.get("Bearer good") == UNREVIEWED
    assert "access to /metrics could not be reviewed: " in caplog.text
    assert "good" not in caplog.text
    world.transport.on("POST", IDENTITY, world._identity)
    world.transport.on("POST", ACCESS, world._access)
    assert await world.get("Bearer good") is None


async def test_few_reviews_at_a_time() -> None:
    """Strangers with many tokens do not keep the API server busy."""
    world, release, most = World(), asyncio.Event(), 0

    class Slow(ScriptedTransport):
        running = 0

        async def request(self, request: Request) -> Response:
            nonlocal most
            self.running += 1
            most = max(most, self.running)
            await release.wait()
            self.running -= 1
            return world._identity(request)

    access = DelegatedAccess(Client(Slow(), world.clock), world.clock)
    asking = [asyncio.ensure_future(access.check(f"Bearer {number}", "get", "/metrics")) for number in range(50)]
    for _ in range(100):
        await asyncio.sleep(0)
    release.set()
    assert (await asyncio.gather(*asking), most) == ([UNAUTHORIZED] * 50, delegated_access.CONCURRENT_REVIEWS_MAX)


async def test_a_user_who_cannot_be_reviewed(world: World) -> None:
    """A name that is not UTF-8, from a front proxy, is an error of this request alone."""
    user = ReviewedUser("\udcff")
    assert await world.access.authorize(user, AccessAttributes("get", "/metrics")) == UNREVIEWED
    assert world.asked == []
