"""An operator as people write them with kopf: test_e2e_kopf runs it, as it is, against our server.

It keeps a journal of what it was told in the file that OPERATOR_JOURNAL names.
"""

import os
from pathlib import Path
from typing import Any

import kopf

JOURNAL = Path(os.environ["OPERATOR_JOURNAL"])


def note(*words: object) -> None:
    """One line of the journal."""
    with JOURNAL.open("a") as journal:
        print(*words, file=journal)


@kopf.on.create("example.org", "v1", "widgets")
def created(name: str, spec: Any, patch: Any, **_: Any) -> dict[str, Any]:
    """What it returns, kopf keeps in the status."""
    note("created", name)
    patch.status["size"] = spec["size"]
    return {"message": f"{name} has size {spec['size']}"}


@kopf.on.update("example.org", "v1", "widgets", field="spec.size")
def resized(name: str, old: Any, new: Any, patch: Any, **_: Any) -> None:
    """Called for a change of this field alone."""
    note("resized", name, old, new)
    patch.status["size"] = new


@kopf.on.delete("example.org", "v1", "widgets")
def deleted(name: str, **_: Any) -> None:
    """Called before the object goes: kopf has put a finalizer on it."""
    note("deleted", name)


@kopf.on.create("apps", "v1", "deployments")
def deployed(name: str, patch: Any, **_: Any) -> None:
    """Marks what it has seen."""
    note("deployed", name)
    patch.metadata.labels["seen"] = "yes"


@kopf.on.event("apps", "v1", "deployments")
def seen(type: str | None, name: str, **_: Any) -> None:
    """Called for every event as it comes, here to be told of the last."""
    if type == "DELETED":
        note("undeployed", name)
