"""/healthz, /livez and /readyz: whether the server works, in upstream's words.

Called by `app`. Each check is a function that returns why it fails, or an empty text; the wiring adds checks of the
parts that it knows.
"""

from collections.abc import Callable, Mapping

from podscaler.controlplane.apiserver.http import responses
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.responses import EncodedResponse

Check = Callable[[], str]
ENDPOINTS = ("healthz", "livez", "readyz")


def _ping() -> str:
    return ""


def answer(path: str, query: Query, checks: Mapping[str, Check]) -> EncodedResponse | None:
    """The answer for `/healthz`, `/readyz/ping`, ...; None where there is no such check.

    Args:
        path: the request's path.
        query: `verbose` lists every check, `exclude` leaves some out.
        checks: by name; one named `ping` is always there.
    """
    endpoint, _, only = path.strip("/").partition("/")
    known = {"ping": _ping, **checks}
    if only:
        return _of({only: known[only]()}, endpoint, verbose="verbose" in query) if only in known else None
    excluded = set(query.texts("exclude"))
    results = {name: check() for name, check in known.items() if name not in excluded}
    return _of(results, endpoint, verbose="verbose" in query)


def _of(results: Mapping[str, str], endpoint: str, *, verbose: bool) -> EncodedResponse:
    failed = any(results.values())
    if not (verbose or failed):
        return responses.text("ok")
    lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in results.items()]
    verdict = "failed" if failed else "passed"
    return responses.text("\n".join((*lines, f"{endpoint} check {verdict}\n")), 500 if failed else 200)
