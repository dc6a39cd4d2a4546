"""Checks every request of the dashboard (host, origin), and defines the headers that every response has.

`podscaler.dashboard.server` calls `request_error` before anything else. A further check: a rule and a case of
`request_error`; a further header: in HEADERS. Rules:

1. The Host header must name the address of this server, so that a page of another name that resolves to it (DNS
   rebinding) reads nothing.
2. A request that changes something must come from a page of this server: its Origin is this server's, or it has none
   and Sec-Fetch-Site does not say otherwise; its body is JSON, which a form of another page cannot send.
3. A request for data that another site caused (Sec-Fetch-Site) is rejected. Opening the page itself is allowed.
4. A page may load scripts, styles and images from this server only, and no page may embed it.

Source: Content Security Policy Level 3, Fetch Metadata Request Headers (W3C).
"""

from collections.abc import Mapping

from aiohttp import web

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
TLS_HEADERS: Mapping[str, str] = {"Strict-Transport-Security": "max-age=31536000"}
TRUSTED_FETCH_SITES = ("", "same-origin", "none")
"""The values of Sec-Fetch-Site for requests of this page or of the user; empty if the client does not send it."""
JSON = "application/json"


class OwnAddress:
    """The address of the server as browsers name it.

    Args:
        scheme: `http` or `https`.
        hosts: the host names and addresses that requests may name, without port; IPv6 addresses in brackets.
        port: the port that the server listens on.
    """

    def __init__(self, scheme: str, hosts: tuple[str, ...], port: int) -> None:
        default_port = {"http": 80, "https": 443}[scheme]  # browsers leave it out
        names = {f"{host}:{port}" for host in hosts} | (set(hosts) if port == default_port else set())
        self.scheme = scheme
        self._hosts = frozenset(name.lower() for name in names)
        self._origins = frozenset(f"{scheme}://{name}" for name in self._hosts)

    def request_error(self, request: web.BaseRequest) -> str:
        """Why a request is rejected, by the module's rules; empty if it is not."""
        if request.headers.get("Host", "").lower() not in self._hosts:
            return "the address of this request is not that of this server: open the link that was printed"
        is_page = request.method in ("GET", "HEAD") and not request.path.startswith("/api/")
        if not is_page and request.headers.get("Sec-Fetch-Site", "") not in TRUSTED_FETCH_SITES:
            return "another site sent this request"
        if request.method in ("GET", "HEAD"):
            return ""
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() not in self._origins:
            return "another site sent this request"
        return "" if request.content_type == JSON else f"the body of a request must be {JSON}"
