"""Who may read the dashboard: login, sessions, the checks of hosts and origins, headers, and namespaces."""

import aiohttp
import pytest

from dashboard_world import WEB_PATH, DashboardWorld, open_viewer
from podscaler.dashboard import sessions
from podscaler.dashboard.server import DashboardOptions
from podscaler.dashboard.sessions import FAILURES_MAX

LIST = "/api/autoscalers"


async def test_login_by_a_link() -> None:
    """The token of the link begins a session, and a second use of it does not."""
    async with DashboardWorld.open(is_logged_in=False) as world:
        link = world.server.login_link()
        before = await world.viewer.get(LIST)
        login = await world.viewer.login(link)
        after = await world.viewer.get(LIST)
        again = await world.viewer.login(link)
    assert (before[0], login, after[0], again[0]) == (401, (200, {"cluster": "test"}), 200, 401)
    assert before[1]["error"].startswith("you are not logged in: open a login link")
    assert again[1]["error"].startswith("this login token is wrong, or was used already")


async def test_the_cookie_is_protected() -> None:
    """Scripts cannot read it, and other sites' requests do not carry it."""
    async with DashboardWorld.open(is_logged_in=False) as world:
        token = world.server.login_link().partition("#token=")[2]
        async with world.viewer.session.post(world.server.url + "/login", json={"token": token}) as response:
            cookie = response.headers["Set-Cookie"]
    flags = {part.strip().partition("=")[0] for part in cookie.split(";")[1:]}
    assert flags == {"HttpOnly", "Max-Age", "Path", "SameSite"}
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize("token", ["", "wrong", "\udcff" * 3], ids=["empty", "wrong", "not UTF-8"])
async def test_wrong_tokens(token: str) -> None:
    """They begin no session."""
    async with DashboardWorld.open(is_logged_in=False) as world:
        body = {"token": token.encode("utf-8", "surrogatepass").decode("latin-1")}
        assert (await world.viewer.post("/login", body))[0] == 401


async def test_too_many_wrong_tokens() -> None:
    """After many wrong tokens no token is accepted for a minute."""
    async with DashboardWorld.open(is_logged_in=False) as world:
        link = world.server.login_link()
        for _ in range(FAILURES_MAX):
            await world.viewer.post("/login", {"token": "x"})
        closed = await world.viewer.login(link)
        await world.cluster.advance(60)
        opened = await world.viewer.login(link)
    assert (closed[0], closed[1]["retryMs"], opened[0]) == (429, 60_000, 200)


async def test_a_new_link_after_each_login() -> None:
    """The one who started the server gets a link for the next login."""
    links: list[str] = []
    async with DashboardWorld.open(options=DashboardOptions(on_login=links.append)) as world:
        again = await world.viewer.login(links[0])
    assert (again[0], len(links)) == (200, 2)


@pytest.mark.parametrize(("after_s", "status"), [(29, 200), (30, 401)], ids=["before", "at the end"])
async def test_sessions_expire(after_s: float, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session ends when it was idle for long; the error says how to log in again."""
    monkeypatch.setattr(sessions, "SESSION_IDLE_S", 30.0)
    async with DashboardWorld.open(is_logged_in=False) as world:
        await world.viewer.login(world.server.login_link())
        await world.cluster.advance(after_s)
        answer = await world.viewer.get(LIST)
    assert answer[0] == status
    assert status == 200 or answer[1]["error"].startswith("the session has expired: open a login link")


async def test_links_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old link begins no session."""
    monkeypatch.setattr(sessions, "LOGIN_TOKEN_S", 30.0)
    async with DashboardWorld.open(is_logged_in=False) as world:
        link = world.server.login_link()
        await world.cluster.advance(30)
        assert (await world.viewer.login(link))[0] == 401


async def test_logout() -> None:
    """The session ends."""
    async with DashboardWorld.open() as world:
        out = await world.viewer.post("/logout", {})
        assert (out[0], (await world.viewer.get(LIST))[0]) == (200, 401)


@pytest.mark.parametrize(
    "path",
    [LIST, WEB_PATH, f"{WEB_PATH}/decisions/1", "/api/stream", "/api/reports", "/api/reports/x.json", "/api/unknown"],
)
async def test_everything_needs_a_session(path: str) -> None:
    """No route gives data to those who are not logged in."""
    async with DashboardWorld.open(is_logged_in=False) as world:
        assert (await world.viewer.get(path))[0] == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=["name", "name with port", "no name", "another site", "another port of this host"],
)
async def test_requests_of_other_sites(headers: dict[str, str]) -> None:
    """A name that resolves to this server (DNS rebinding), and requests from other sites, get nothing."""
    async with DashboardWorld.open() as world:
        status, body = await world.viewer.get(LIST, **headers)
    assert (status, list(body)) == (403, ["error"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Content-Type": "text/plain"}, 403),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://localhost:{port}"}, 200),
        ({}, 200),
    ],
    ids=["other site", "null", "other scheme", "text", "form", "own address", "own name", "no browser"],
)
async def test_writes_of_other_sites(headers: dict[str, str], status: int) -> None:
    """A POST must come from a page of this server, with JSON."""
    async with DashboardWorld.open() as world:
        filled = {name: text.format(port=world.server.url.rpartition(":")[2]) for name, text in headers.items()}
        answer = await world.viewer.post("/logout", {}, **filled)
    assert answer[0] == status


@pytest.mark.parametrize("path", ["/", LIST, "/api/unknown", "/no/such/page", "/api/stream"])
async def test_security_headers(path: str) -> None:
    """Every response forbids scripts of elsewhere, embedding, and guesses of its type."""
    async with DashboardWorld.open() as world, world.viewer.session.get(world.server.url + path) as response:
        headers = response.headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    assert (policy["frame-ancestors"], policy["connect-src"], policy["img-src"]) == ("'none'", "'self'", "'self' data:")
    assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
    assert "Server" not in headers


@pytest.mark.parametrize(
    ("token", "status", "names"),
    [("shop", 200, ["web"]), ("other", 200, []), ("unknown", 401, None), ("away", 503, None)],
    ids=["allowed", "another namespace", "unknown token", "API server away"],
)
async def test_bearer_tokens(token: str, status: int, names: list[str] | None) -> None:
    """Where tokens begin sessions, the viewer sees the namespaces that the API server allows."""
    async with DashboardWorld.open(is_logged_in=False, options=DashboardOptions(open_viewer=open_viewer)) as world:
        login = await world.viewer.post("/login", {"token": token})
        rows = await world.viewer.get(LIST)
    assert login[0] == status
    assert names is None or [row["name"] for row in rows[1]["rows"]] == names


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", WEB_PATH), ("GET", f"{WEB_PATH}/decisions/latest"), ("POST", f"{WEB_PATH}/what-if")],
)
async def test_forbidden_namespaces(method: str, path: str) -> None:
    """The error names the permission that is missing."""
    async with DashboardWorld.open(is_logged_in=False, options=DashboardOptions(open_viewer=open_viewer)) as world:
        await world.viewer.post("/login", {"token": "other"})
        answer = await (
            world.viewer.get(path) if method == "GET" else world.viewer.post(path, {"set": ["maxReplicas=3"]})
        )
    assert answer == (
        403,
        {
            "error": "you may not get horizontalpodautoscalers in shop",
            "needs": "get horizontalpodautoscalers in shop",
        },
    )


async def test_streams_leave_out_forbidden_namespaces() -> None:
    """Events are about the namespaces that the viewer may see alone."""
    async with DashboardWorld.open(is_logged_in=False, options=DashboardOptions(open_viewer=open_viewer)) as world:
        await world.viewer.post("/login", {"token": "other"})
        async with world.viewer.events("?namespace=shop&name=web") as events:
            for _ in range(40):
                await world.cluster.advance(0.5)
            assert [await events.next() for _ in range(2)] == [("comment", "stream"), ("comment", "keep-alive")]


async def test_long_bodies_are_refused() -> None:
    """A body over the limit is not read to its end."""
    async with DashboardWorld.open() as world:
        assert (await world.viewer.post("/login", {"token": "x" * 100_000}))[0] == 413


async def test_what_is_no_request_for_a_page() -> None:
    """Other methods and other addresses have an error in JSON."""
    async with DashboardWorld.open() as world:
        session: aiohttp.ClientSession = world.viewer.session
        headers = {"Content-Type": "application/json"}
        async with session.delete(world.server.url + "/", headers=headers) as response:
            deleted = response.status
        assert (deleted, (await world.viewer.get("/../../etc/passwd"))[0]) == (405, 404)
