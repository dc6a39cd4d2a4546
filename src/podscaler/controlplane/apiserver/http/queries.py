"""The query parameters of requests, read as upstream reads them: the options of each verb.

Called by the handlers; pure. Upstream's reading is lenient (any boolean but `false` and `0` is true) where it may be,
and its refusals are those of the options' own validation.

Source: metav1.ListOptions, CreateOptions, UpdateOptions, PatchOptions, DeleteOptions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import parse_qsl

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.managed_fields import naming
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors
from podscaler.controlplane.storage.options import DeleteOptions, ListOptions, Preconditions

FieldValidation = Literal["Strict", "Warn", "Ignore"]
FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
PARAMETERS_MAX = 1000
_FORCES = "ignoreStoreReadErrorWithClusterBreakingPotential"
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


class Query:
    """The parameters of one request.

    Args:
        text: the raw query.

    Raises:
        StatusError: 400 for more parameters than anybody needs.
    """

    def __init__(self, text: str) -> None:
        self._values: dict[str, list[str]] = {}
        if not text:
            return
        try:
            readable = "&".join(filter(_is_readable, text.split("&")))
            pairs = parse_qsl(readable, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
        except ValueError as error:
            raise http_errors.bad_request(f"invalid query: {error}") from None
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """The first value, empty where there is none."""
        values = self._values.get(name)
        return values[0] if values else ""

    def texts(self, name: str) -> list[str]:
        """All values, in order."""
        return self._values.get(name, [])

    def flag(self, name: str) -> bool | None:
        """The value as a boolean, None where there is none."""
        values = self._values.get(name)
        return values[0].lower() not in ("false", "0") if values else None

    def number(self, name: str) -> int | None:
        """The value as an int64, None where there is none.

        Raises:
            StatusError: 400 in the words of Go's parser.
        """
        values = self._values.get(name)
        return _int64(values[0]) if values else None


def _is_readable(pair: str) -> bool:
    """Whether Go reads a parameter; those that it cannot read it leaves out."""
    return ";" not in pair and _BROKEN_ESCAPE.search(pair) is None


def _int64(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        raise http_errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text) if len(digits) <= 20 else 2**63
    if not -(2**63) <= value < 2**63:
        raise http_errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


EMPTY = Query("")


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What of metav1.ListOptions concerns the stream of a watch.

    Attributes:
        timeout_s: when the server ends it, None where the client does not say.
        bookmarks: whether bookmarks may be sent.
    """

    timeout_s: int | None = None
    bookmarks: bool = False


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of create, update and patch.

    Attributes:
        dry_run: check and answer, store nothing.
        field_validation: what happens to fields that we do not know.
        field_manager: who writes; empty where the client does not say.
        force: take over fields of other managers (apply only), None where not sent.
    """

    dry_run: bool = False
    field_validation: FieldValidation = "Warn"
    field_manager: str = ""
    force: bool | None = None


PLAIN_WRITE = WriteOptions()


def list_options(query: Query) -> ListOptions:
    """What a list or watch selects.

    Raises:
        StatusError: 400 for a number that is none.
    """
    query.number("timeoutSeconds")
    return ListOptions(
        label_selector=query.text("labelSelector"),
        field_selector=query.text("fieldSelector"),
        resource_version=query.text("resourceVersion"),
        resource_version_match=query.text("resourceVersionMatch"),
        limit=query.number("limit") or 0,
        continue_token=query.text("continue"),
        send_initial_events=query.flag("sendInitialEvents"),
    )


def stream_options(query: Query) -> WatchOptions:
    """How a watch is streamed.

    Raises:
        StatusError: 400 for a number that is none.
    """
    return WatchOptions(query.number("timeoutSeconds"), bool(query.flag("allowWatchBookmarks")))


def write_options(query: Query, kind: Literal["CreateOptions", "UpdateOptions", "PatchOptions"]) -> WriteOptions:
    """The options of a create, update or patch.

    Args:
        query: the request's parameters.
        kind: which options they are; refusals name it.

    Raises:
        StatusError: 422 for values that do not exist.
    """
    if query is EMPTY:
        return PLAIN_WRITE
    validation = query.text("fieldValidation")
    manager = query.text("fieldManager")
    faults = _dry_run_faults(query.texts("dryRun"))
    if validation not in FIELD_VALIDATIONS:
        faults.append(field.not_supported("fieldValidation", validation, FIELD_VALIDATIONS))
    faults += naming.faults("fieldManager", manager)
    if faults:
        raise _refused(kind, faults)
    chosen = cast(FieldValidation, validation or "Warn")
    return WriteOptions(bool(query.texts("dryRun")), chosen, manager, query.flag("force"))


def patch_options(query: Query, *, applies: bool) -> WriteOptions:
    """The options of a patch; of one that `applies` a configuration more is asked.

    Raises:
        StatusError: 422 for values that do not exist or do not fit the kind of patch.
    """
    options = write_options(query, "PatchOptions")
    if applies and not options.field_manager:
        raise _refused("PatchOptions", [field.required("fieldManager", "is required for apply patch")])
    if not applies and options.force is not None:
        raise _refused("PatchOptions", [field.forbidden("force", "may not be specified for non-apply patch")])
    return options


def delete_options(query: Query, body: Mapping[str, Any]) -> DeleteOptions:
    """The options of a delete: those of the body, and where it has none at all those of the query.

    Args:
        query: the request's parameters.
        body: a decoded meta/v1.DeleteOptions; empty where the request had no body.

    Raises:
        StatusError: 400 for a number that is none, 422 for values that do not exist.
    """
    given = dict(body) if body else _delete_query(query)
    faults = _policy_faults(body) + _dry_run_faults(given.get("dryRun") or [])
    if faults:
        raise _refused("DeleteOptions", faults)
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        grace_period_s=given.get("gracePeriodSeconds"),
        propagation=given.get("propagationPolicy") or "",
        orphan_dependents=given.get("orphanDependents"),
        preconditions=Preconditions(preconditions.get("uid", ""), preconditions.get("resourceVersion", "")),
        dry_run=bool(given.get("dryRun")),
        forces_unreadable=bool(given.get(_FORCES)),
    )


def _policy_faults(body: Mapping[str, Any]) -> list[FieldError]:
    """What only a body can say: no policy at all, as a text."""
    if body.get("propagationPolicy") != "":
        return []
    return [field.not_supported("propagationPolicy", "", ("Foreground", "Background", "Orphan", "nil"))]


def _delete_query(query: Query) -> dict[str, Any]:
    return {
        "gracePeriodSeconds": query.number("gracePeriodSeconds"),
        "propagationPolicy": query.text("propagationPolicy"),
        "orphanDependents": query.flag("orphanDependents"),
        "dryRun": query.texts("dryRun"),
        _FORCES: query.flag(_FORCES),
        "preconditions": {name: query.text(name) for name in ("uid", "resourceVersion")},
    }


def _dry_run_faults(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [field.not_supported("dryRun", list(values), ["All"])]


def _refused(kind: str, faults: Sequence[FieldError]) -> StatusError:
    return field.refusal(group="meta.k8s.io", kind=kind, name="", errors=faults)
