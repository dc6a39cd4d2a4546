"""The text that both sides of SPDY/3 begin to compress headers with.

Called by `headers`. It must be the same to the byte for everyone: the names of common headers and methods, each behind
its length in four bytes, then a tail of common values.

Source: SPDY Protocol, draft 3, section 2.6.10.1.
"""

import struct
from typing import Final

_WORDS: Final = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age
allow authorization cache-control connection content-base content-encoding content-language content-length
content-location content-md5 content-range content-type date etag expect expires from host if-match
if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma
proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
user-agent vary via warning www-authenticate method get status
"""

_PAIRS: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")

_CODES: Final = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"

_REASONS: Final = (
    "203 Non-Authoritative Information",
    "204 No Content",
    "301 Moved Permanently",
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "500 Internal Server Error",
    "501 Not Implemented",
    "503 Service Unavailable",
)

_VALUES: Final = (
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _prefixed(word: str) -> bytes:
    return struct.pack(">I", len(word)) + word.encode()


DICTIONARY: Final = (
    b"".join(map(_prefixed, (*_WORDS.split(), *_PAIRS))) + (_CODES + "".join(_REASONS) + _VALUES).encode()
)
