"""The program `wget` of the image `busybox`, for machines without one: fetches URLs, as busybox does.

`kubelet.launching.images` writes a script that runs it. It imports the standard library only. The content goes to a
file named after the end of the URL, or to that of `-O` (`-` is standard output). `-T` is a timeout in seconds; `-q`,
`-S` and `-c` are accepted and have no effect. The exit status is 1 if a URL cannot be fetched. A new option: an
argument of `getopt` in `main`, and its effect in `fetch`.

Source: busybox' usage text of wget.
"""

import getopt
import shutil
import socket
import sys
import urllib.error
import urllib.request
from urllib.parse import urlsplit

USAGE = "usage: wget [-qSc] [-O FILE] [-T SECONDS] [--header HEADER] [--post-data DATA] URL..."
TIMEOUT_S = 900.0


def fetch(url: str, options: dict[str, str]) -> None:
    """Fetch one URL into the file that the options name. Raises OSError, ValueError for an invalid `-T` or URL.

    Args:
        options: option -> argument, as from getopt: {"-O": "-", "--header": "Accept: */*"}.
    """
    if not url.startswith(("http://", "https://")):
        raise OSError(f"not an http url: {url}")
    data = options["--post-data"].encode() if "--post-data" in options else None
    request = urllib.request.Request(url, data=data)  # noqa: S310  its scheme was checked
    if "--header" in options:
        name, _, value = options["--header"].partition(":")
        request.add_header(name, value.strip())
    timeout_s = _parse_seconds(options["-T"]) if "-T" in options else TIMEOUT_S
    with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310  as above
        target = options.get("-O") or urlsplit(url).path.rpartition("/")[2] or "index.html"
        if target == "-":
            shutil.copyfileobj(response, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return
        with open(target, "wb") as file:
            shutil.copyfileobj(response, file)


def _parse_seconds(seconds_text: str) -> float:
    """The number of seconds in the argument of `-T`. Raises ValueError."""
    try:
        return float(seconds_text)
    except ValueError:
        raise ValueError(f"invalid number '{seconds_text}'") from None


def error_message(url: str, error: OSError | ValueError) -> str:
    """The message of an error of `fetch`, in busybox' words."""
    if isinstance(error, ValueError):
        return str(error)
    if isinstance(error, urllib.error.HTTPError):
        return f"server returned error: HTTP/1.1 {error.code} {error.reason}"
    if not error.errno and not isinstance(error, urllib.error.URLError):
        return str(error)
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    host = urlsplit(url).hostname or url
    if isinstance(reason, socket.gaierror) and reason.strerror:
        return f"bad address '{host}'"
    reason_text = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return f"can't connect to remote host ({host}): {reason_text}"


def main() -> int:
    """Fetch the URLs of the command line; returns the exit status."""
    try:
        options, urls = getopt.gnu_getopt(sys.argv[1:], "qScO:T:", ["header=", "post-data=", "quiet"])
    except getopt.GetoptError as error:
        print(f"wget: {error}\n{USAGE}", file=sys.stderr)
        return 1
    if not urls:
        print(USAGE, file=sys.stderr)
        return 1
    for url in urls:
        full_url = url if "://" in url else f"http://{url}"
        try:
            fetch(full_url, dict(options))
        except (OSError, ValueError) as error:
            print(f"wget: {error_message(full_url, error)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
