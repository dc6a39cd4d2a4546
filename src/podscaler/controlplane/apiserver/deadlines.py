"""How long a client is ready to wait: `?timeout=`, which only long-running requests may leave unread.

Called by `app` before anything else is looked at, as upstream does. Requests here take far less than any timeout that
makes sense, so that it is checked and nothing more.

Source: upstream's request deadline.
"""

from urllib.parse import parse_qs

from podscaler.api.machinery import duration
from podscaler.controlplane.apiserver.http import http_errors

PARAMETER = "timeout"
_STREAMS = ("attach", "exec", "log", "portforward", "proxy")


def check(raw_path: str) -> None:
    """Return if the request says nothing about its time, or something that can be understood.

    Raises:
        StatusError: 400.
    """
    if f"{PARAMETER}=" not in raw_path:
        return
    path, _, query = raw_path.partition("?")
    parameters = parse_qs(query)
    wanted = parameters.get(PARAMETER, [""])[0]
    if not wanted or path.endswith(_STREAMS) or parameters.get("watch", [""])[0] in ("1", "true"):
        return
    try:
        duration.parse(wanted)
    except ValueError as error:
        raise http_errors.bad_request(f"invalid timeout specified in the request URL - {error}") from None
