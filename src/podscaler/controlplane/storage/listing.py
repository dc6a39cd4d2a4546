"""Lists stored objects in pages, with continue tokens and the semantics of resourceVersion.

`registry.objects` calls `get_page` and, as `storage.watching` does, `parse_revision`. A page at an older revision is
the current table with the later events of the change log undone, so all pages of one list are consistent, as long as
the log reaches back to its revision. A continue token is base64url of {"v": "meta.k8s.io/v1", "rv": revision of the
list, "start": first key of the next page}: a new field goes into `_encode_token` and `_parse_token`.

Source: the API conventions on resourceVersion, limit and continue; tests/conformance/golden/lists-watch.jsonl.
"""

import base64
import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from podscaler.api.machinery import field, numbers
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import api_errors
from podscaler.base.errors import StatusError
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.selection_predicate import SelectionPredicate
from podscaler.controlplane.storage.store import Store

_CONTINUE_FORMAT = "meta.k8s.io/v1"
_NEWEST_REVISION = -1
"""In a continue token: the next page shows the newest objects, not those of the first page's revision."""
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")
_LIST_TOO_OLD = "The resourceVersion for the provided list is too old."
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list.

    Attributes:
        entries: in key order.
        revision: the resourceVersion of the list.
        continue_token: for the next page, empty on the last page.
        remaining: metadata.remainingItemCount: the number of objects after this page; None on the last page, and with
            selectors, as it is not known then.
    """

    entries: list[Entry]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


class ContinueExpired(StatusError):
    """410 for a token with a compacted revision; its Status has a token that continues with the newest objects."""

    def __init__(self, continue_token: str) -> None:
        super().__init__(_CONTINUE_TOO_OLD, code=410, reason="Expired")
        self.continue_token = continue_token

    def to_status(self) -> dict[str, Any]:
        """The Status with `metadata.continue`."""
        return super().to_status() | {"metadata": {"continue": self.continue_token}}


def get_page(store: Store, selection: SelectionPredicate, options: ListOptions) -> ListPage:
    """The page of the selected objects that `options` request (limit, continue token, resourceVersion).

    Raises:
        StatusError: 400 for an invalid token or version, 410 for a compacted one (ContinueExpired for tokens), 422 for
            options that exclude each other, 504 for a version in the future.
    """
    _check_options(options)
    if options.continue_token:
        return _next_page(store, selection, options)
    revision = _listed_revision(options.resource_version)
    if revision > store.revision:
        raise api_errors.too_large_resource_version(revision, store.revision)
    limit = 0 if options.resource_version == "0" else options.limit  # kube-apiserver's cache ignores it for 0
    if _is_exact(options):
        if revision < store.log.compacted_revision:
            raise api_errors.expired(_LIST_TOO_OLD)
        return _page_at_revision(store, selection, revision=revision, start_key="", limit=limit)
    return _page_at_revision(store, selection, revision=store.revision, start_key="", limit=limit)


def _listed_revision(resource_version: str) -> int:
    """As `parse_revision`, but raises StatusError 400."""
    try:
        return parse_revision(resource_version)
    except StatusError as error:
        raise api_errors.bad_request(f"invalid resource version: {error.message}") from None


def parse_revision(resource_version: str) -> int:
    """The number in a `resourceVersion` parameter, 0 if it is empty. Raises StatusError 500, as kube-apiserver does."""
    if not resource_version or resource_version == "0":
        return 0
    try:
        return numbers.parse_uint(resource_version, 64)
    except ValueError as error:
        raise api_errors.error_without_reason(
            str(field.invalid("resourceVersion", resource_version, str(error)))
        ) from None


def _check_options(options: ListOptions) -> None:
    """Raise StatusError 422 for options that exclude each other."""
    match, version = options.resource_version_match, options.resource_version
    errors: list[FieldError] = []
    if match:
        errors += _match_errors(match, version, options.continue_token)
    if options.send_initial_events is not None:
        errors.append(field.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if errors:
        raise api_errors.invalid_options("ListOptions", errors)


def _match_errors(match: str, version: str, continue_token: str) -> list[FieldError]:
    """Errors of resourceVersionMatch, which needs a resourceVersion and excludes a continue token."""
    parameter = "resourceVersionMatch"
    errors = []
    if not version:
        errors.append(field.forbidden(parameter, f"{parameter} is forbidden unless resourceVersion is provided"))
    if continue_token:
        errors.append(field.forbidden(parameter, f"{parameter} is forbidden when continue is provided"))
    if match not in ("Exact", "NotOlderThan"):
        errors.append(field.not_supported(parameter, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        errors.append(field.forbidden(parameter, f'{parameter} "exact" is forbidden for resourceVersion "0"'))
    return errors


def _is_exact(options: ListOptions) -> bool:
    """Whether the list must be at exactly its resourceVersion: with the match Exact, or a limit and no match."""
    if options.resource_version in ("", "0"):
        return False
    return options.resource_version_match == "Exact" or (not options.resource_version_match and options.limit > 0)


def _next_page(store: Store, selection: SelectionPredicate, options: ListOptions) -> ListPage:
    """The page that follows a continue token.

    Raises ContinueExpired if its revision is compacted; StatusError 400 for an invalid token, 504 for a future one.
    """
    revision, start_key = _parse_token(options.continue_token)
    if options.resource_version not in ("", "0"):
        raise api_errors.bad_request("specifying resource version is not allowed when using continue")
    if revision == _NEWEST_REVISION:
        return _page_at_revision(store, selection, revision=store.revision, start_key=start_key, limit=options.limit)
    if revision > store.revision:
        raise api_errors.too_large_resource_version(revision, store.revision)
    if revision < store.log.compacted_revision:
        raise ContinueExpired(_encode_token(_NEWEST_REVISION, start_key))
    return _page_at_revision(store, selection, revision=revision, start_key=start_key, limit=options.limit)


def _page_at_revision(
    store: Store, selection: SelectionPredicate, *, revision: int, start_key: str, limit: int
) -> ListPage:
    """A page at `revision` that begins at `start_key` (a key without the namespace; `""`: at the first object)."""
    prefix = f"{selection.namespace}/" if selection.namespace else ""
    entries = _entries_at(store, selection, revision)
    if start_key:
        entries = entries[bisect_left(entries, prefix + start_key, key=lambda entry: entry.key) :]
    selected, scanned = _select_first(entries, selection, limit)
    if scanned == len(entries):
        return ListPage(selected, revision)
    # the key that follows immediately, as in etcd: the last one with a NUL character appended
    token = _encode_token(revision, f"{selected[-1].key.removeprefix(prefix)}\0")
    return ListPage(selected, revision, token, None if selection.is_filtered else len(entries) - scanned)


def _select_first(entries: list[Entry], selection: SelectionPredicate, limit: int) -> tuple[list[Entry], int]:
    """The first `limit` selected entries (0 or less: all), and how many entries were scanned for them."""
    count = limit if limit > 0 else len(entries)
    if not selection.is_filtered:
        return entries[:count], min(count, len(entries))
    selected: list[Entry] = []
    for index, entry in enumerate(entries):
        if len(selected) == count:
            return selected, index
        if selection.matches(entry):
            selected.append(entry)
    return selected, len(entries)


def _entries_at(store: Store, selection: SelectionPredicate, revision: int) -> list[Entry]:
    """The entries of the namespace at `revision`, in key order, before selectors are applied."""
    resource_key = selection.resource.storage_key
    current_entries = store.table(resource_key).select(selection.namespace)
    versions_at_revision: dict[str, Entry | None] = {}  # of objects changed since; None for one created since
    for event in store.log.after(resource_key, revision):
        if selection.is_in_namespace(event.subject):  # `setdefault`: the first change since has the version wanted
            versions_at_revision.setdefault(event.subject.key, event.previous)
    if not versions_at_revision:
        return current_entries
    entries = [entry for entry in current_entries if entry.key not in versions_at_revision]
    entries += [entry for entry in versions_at_revision.values() if entry is not None]
    return sorted(entries, key=lambda entry: entry.key)


def _encode_token(revision: int, start_key: str) -> str:
    """The continue token of a page at `revision` (or `_NEWEST_REVISION`) that begins at `start_key`."""
    token_json = json.dumps({"v": _CONTINUE_FORMAT, "rv": revision, "start": start_key}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token_json.encode()).rstrip(b"=").decode()


def _parse_token(token_base64: str) -> tuple[int, str]:
    """The revision and the first key of the next page. Raises StatusError 400."""
    illegal_match = _NOT_BASE64.search(token_base64)
    if illegal_match is not None or len(token_base64) % 4 == 1:
        offset = illegal_match.start() if illegal_match is not None else len(token_base64) - 1
        raise _invalid_token(f"illegal base64 data at input byte {offset}")
    token_json = base64.urlsafe_b64decode(token_base64 + "=" * (-len(token_base64) % 4))
    try:
        token = json.loads(token_json.decode("utf-8"))
    except ValueError as error:
        raise _invalid_token(_syntax_error(token_json)) from error
    token = {} if token is None else token  # Go decodes null to an empty struct
    _check_types(token)
    if token.get("v") != _CONTINUE_FORMAT:
        raise _invalid_token(f"server does not recognize this encoded version {token.get('v') or ''}")
    revision, start_key = token.get("rv", 0), token.get("start", "")
    if not revision:
        raise _invalid_token(f"incorrect encoded start resourceVersion (version {_CONTINUE_FORMAT})")
    if not start_key:
        raise _invalid_token(f"encoded start key empty (version {_CONTINUE_FORMAT})")
    if any(path_element in (".", "..") for path_element in start_key.split("/")):
        raise _invalid_token(start_key)
    return revision, start_key


def _check_types(token: Any) -> None:
    """Raise StatusError 400 for a token with fields of other types."""
    if not isinstance(token, dict):
        raise _invalid_token(f"json: cannot unmarshal {_json_type(token)} into Go value of type storage.continueToken")
    for name, python_type, go_type in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        field_value = token.get(name)
        if field_value is not None and type(field_value) is not python_type:  # bool is no int here
            go_field = f"Go struct field continueToken.{name} of type {go_type}"
            raise _invalid_token(f"json: cannot unmarshal {_json_type(field_value)} into {go_field}")


def _json_type(json_value: Any) -> str:
    """Go's name of the type of a JSON value."""
    if isinstance(json_value, bool):
        return "bool"
    if isinstance(json_value, dict):
        return "object"
    if isinstance(json_value, list):
        return "array"
    return "string" if isinstance(json_value, str) else "number"


def _invalid_token(reason: str) -> StatusError:
    """400 for a continue token."""
    return api_errors.bad_request(f"invalid continue token: continue key is not valid: {reason}")


def _syntax_error(token_json: bytes) -> str:
    """Go's message for invalid JSON, assuming that its first byte is wrong or its end is missing."""
    first_byte = token_json.lstrip(b" \t\r\n")[:1]
    if not first_byte or first_byte in b'{["':
        return "unexpected end of JSON input"
    return f"invalid character '{chr(first_byte[0])}' looking for beginning of value"
