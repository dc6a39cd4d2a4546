"""The record of ServiceAccount (core/v1).

Source: the API reference of core/v1.
"""

from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Version


def _row(account: Object, now_ns: int) -> list[Any]:
    return [account["metadata"].get("name", ""), printing.created_age(account, now_ns)]


RESOURCE = Resource(
    group="",
    plural="serviceaccounts",
    singular="serviceaccount",
    kind="ServiceAccount",
    versions=(Version("v1", "core/v1.ServiceAccount"),),
    storage_version="v1",
    short_names=("sa",),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the service account, unique within its namespace."),
            Column("Age", description="Time since the service account was created."),
        ),
        row=_row,
    ),
)
