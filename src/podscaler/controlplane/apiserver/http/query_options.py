"""Parses query parameters into the options of list, watch, create, update, patch and delete.

The handlers call it: `?limit=500&labelSelector=app%3Dweb` becomes ListOptions(limit=500, label_selector="app=web"). As
in kube-apiserver, parsing is lenient (any boolean but `false` and `0` is true); the options are then validated, with
its messages. A new parameter: add it to the options (of list and delete in `controlplane.storage.options`) and to the
function that fills them.

Source: metav1.ListOptions, CreateOptions, UpdateOptions, PatchOptions, DeleteOptions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import parse_qsl

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.managed_fields import manager_names
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors
from podscaler.controlplane.storage.options import DeleteOptions, ListOptions, Preconditions

FieldValidation = Literal["Strict", "Warn", "Ignore"]
_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
"""The values of `fieldValidation`, in the order of the error message; empty counts as Warn."""
PARAMETERS_MAX = 1000
"""The most parameters of a query; more are an error 400."""
_INT64_LIMIT = 2**63
_DIGITS_MAX = 20
"""A number with more digits counts as out of the range of an int64, also with leading zeros."""
_FORCE_UNREADABLE = "ignoreStoreReadErrorWithClusterBreakingPotential"
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


class Query:
    """The parameters of one request.

    Args:
        raw_query: what follows the `?`; parameters that Go's parser skips (a `;` or a broken escape) are skipped, too.

    Raises StatusError 400 for more than `PARAMETERS_MAX` parameters.
    """

    def __init__(self, raw_query: str) -> None:
        self._values: dict[str, list[str]] = {}
        if not raw_query:
            return
        try:
            readable_query = "&".join(filter(_is_read_by_go, raw_query.split("&")))
            parameters = parse_qsl(readable_query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
        except ValueError as error:
            raise http_errors.bad_request(f"invalid query: {error}") from None
        for name, value in parameters:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """The first value, empty if there is none."""
        values = self._values.get(name)
        return values[0] if values else ""

    def texts(self, name: str) -> list[str]:
        """All values, in order."""
        return self._values.get(name, [])

    def flag(self, name: str) -> bool | None:
        """The first value as a boolean, None if there is none."""
        values = self._values.get(name)
        return values[0].lower() not in ("false", "0") if values else None

    def number(self, name: str) -> int | None:
        """The first value as an int64, None if there is none. Raises StatusError 400 with the message of Go."""
        values = self._values.get(name)
        return _parse_int64(values[0]) if values else None


def _is_read_by_go(parameter: str) -> bool:
    """Whether Go's parser accepts the parameter `NAME=VALUE`."""
    return ";" not in parameter and _BROKEN_ESCAPE.search(parameter) is None


def _parse_int64(number_text: str) -> int:
    """The number that Go's ParseInt reads. Raises StatusError 400 with its message."""
    digits = number_text[1:] if number_text[:1] in ("-", "+") else number_text
    if not (digits.isascii() and digits.isdigit()):
        raise http_errors.bad_request(f'strconv.ParseInt: parsing "{number_text}": invalid syntax')
    number = int(number_text) if len(digits) <= _DIGITS_MAX else _INT64_LIMIT
    if not -_INT64_LIMIT <= number < _INT64_LIMIT:
        raise http_errors.bad_request(f'strconv.ParseInt: parsing "{number_text}": value out of range')
    return number


EMPTY_QUERY = Query("")
"""The query of most requests, which functions may recognize by identity to save time."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of create, update and patch.

    Attributes:
        dry_run: whether nothing is stored.
        field_validation: whether unknown and duplicate fields are errors, warnings or ignored.
        field_manager: the parameter `fieldManager`; empty if it is not sent.
        force: whether apply takes over fields of other managers; None if it is not sent.
    """

    dry_run: bool = False
    field_validation: FieldValidation = "Warn"
    field_manager: str = ""
    force: bool | None = None


DEFAULT_WRITE_OPTIONS = WriteOptions()


def list_options(query: Query) -> ListOptions:
    """The options of a list or watch that select objects. Raises StatusError 400 for an invalid number."""
    query.number("timeoutSeconds")  # only validated here: `watch_streams` reads it
    return ListOptions(
        label_selector=query.text("labelSelector"),
        field_selector=query.text("fieldSelector"),
        resource_version=query.text("resourceVersion"),
        resource_version_match=query.text("resourceVersionMatch"),
        limit=query.number("limit") or 0,
        continue_token=query.text("continue"),
        send_initial_events=query.flag("sendInitialEvents"),
    )


def write_options(query: Query, kind: Literal["CreateOptions", "UpdateOptions", "PatchOptions"]) -> WriteOptions:
    """The options of a create, update or patch, of that kind in error messages.

    Raises StatusError 422 for invalid values.
    """
    if query is EMPTY_QUERY:
        return DEFAULT_WRITE_OPTIONS
    validation = query.text("fieldValidation")
    manager = query.text("fieldManager")
    errors = _dry_run_errors(query.texts("dryRun"))
    if validation not in _FIELD_VALIDATIONS:
        errors.append(field.not_supported("fieldValidation", validation, _FIELD_VALIDATIONS))
    errors += manager_names.errors("fieldManager", manager)
    if errors:
        raise _invalid_options(kind, errors)
    field_validation = cast(FieldValidation, validation or "Warn")
    return WriteOptions(bool(query.texts("dryRun")), field_validation, manager, query.flag("force"))


def patch_options(query: Query, *, applies: bool) -> WriteOptions:
    """The options of a patch; `applies`: of server-side apply, which needs a field manager and allows `force`.

    Raises StatusError 422 for invalid values, also those that do not fit the type of patch.
    """
    options = write_options(query, "PatchOptions")
    if applies and not options.field_manager:
        raise _invalid_options("PatchOptions", [field.required("fieldManager", "is required for apply patch")])
    if not applies and options.force is not None:
        raise _invalid_options("PatchOptions", [field.forbidden("force", "may not be specified for non-apply patch")])
    return options


def delete_options(query: Query, body: Mapping[str, Any]) -> DeleteOptions:
    """The options of a delete: those of the body, or those of the query where the body is empty.

    Args:
        query: the request's parameters.
        body: a decoded meta/v1.DeleteOptions; empty if the request had no body.

    Raises StatusError 400 for an invalid number, 422 for invalid values.
    """
    options = dict(body) if body else _delete_options_in(query)
    errors = _empty_policy_errors(body) + _dry_run_errors(options.get("dryRun") or [])
    if errors:
        raise _invalid_options("DeleteOptions", errors)
    preconditions = options.get("preconditions") or {}
    return DeleteOptions(
        grace_period_s=options.get("gracePeriodSeconds"),
        propagation=options.get("propagationPolicy") or "",
        orphan_dependents=options.get("orphanDependents"),
        preconditions=Preconditions(preconditions.get("uid", ""), preconditions.get("resourceVersion", "")),
        dry_run=bool(options.get("dryRun")),
        forces_unreadable=bool(options.get(_FORCE_UNREADABLE)),
    )


def _empty_policy_errors(body: Mapping[str, Any]) -> list[FieldError]:
    """The error for an empty policy in a body; in a query it means no policy. `registry.deletion` checks others."""
    if body.get("propagationPolicy") != "":
        return []
    return [field.not_supported("propagationPolicy", "", ("Foreground", "Background", "Orphan", "nil"))]


def _delete_options_in(query: Query) -> dict[str, Any]:
    """A meta/v1.DeleteOptions object from query parameters. Raises StatusError 400 for an invalid number."""
    return {
        "gracePeriodSeconds": query.number("gracePeriodSeconds"),
        "propagationPolicy": query.text("propagationPolicy"),
        "orphanDependents": query.flag("orphanDependents"),
        "dryRun": query.texts("dryRun"),
        _FORCE_UNREADABLE: query.flag(_FORCE_UNREADABLE),
        "preconditions": {name: query.text(name) for name in ("uid", "resourceVersion")},
    }


def _dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    """The error for a `dryRun` with another value than All."""
    if all(value == "All" for value in values):
        return []
    return [field.not_supported("dryRun", list(values), ["All"])]


def _invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    """The error 422 of options of a kind (`DeleteOptions`)."""
    return field.invalid_object(group="meta.k8s.io", kind=kind, name="", errors=errors)
