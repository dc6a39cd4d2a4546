"""The dashboard over TLS: the cookie is for HTTPS alone, browsers are told to keep to it, other names are added."""

import ssl

import aiohttp

from dashboard_world import DashboardWorld
from podscaler.dashboard.server import DashboardOptions
from podscaler.kube.serving import serving_certificate


async def test_over_tls() -> None:
    """A `__Host-` cookie with Secure, Strict-Transport-Security, and a login by the further name."""
    tls = serving_certificate.self_signed_context(["127.0.0.1"])
    options = DashboardOptions(tls=tls, hosts=("hpa.example.com",))
    async with DashboardWorld.open(options=options, is_logged_in=False) as world:
        token = world.server.login_link().partition("#token=")[2]
        port = world.server.url.rpartition(":")[2]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Host": f"hpa.example.com:{port}", "Origin": f"https://hpa.example.com:{port}"}
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.post(f"https://127.0.0.1:{port}/login", json={"token": token}, headers=headers) as response,
        ):
            cookie = response.headers["Set-Cookie"]
            found = response.status, response.headers["Strict-Transport-Security"]
    assert (world.server.url, found) == (f"https://hpa.example.com:{port}", (200, "max-age=31536000"))
    assert cookie.startswith(f"__Host-podscaler-{port}=")
    assert "Secure" in cookie
