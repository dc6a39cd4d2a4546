"""A limit to the number of updaters that an object remembers.

Called by `updating`. Beyond ten, the oldest of one version become one entry, `ancient-changes`.

Source: apimachinery's cap on managers.
"""

from podscaler.api.managed_fields import field_sets, managers
from podscaler.api.managed_fields.managers import Managed, Manager, Managers

UPDATERS_MAX = 10
ANCIENT = "ancient-changes"


def capped(all_of: Managers) -> Managers:
    """The managers with at most so many updaters, as far as their versions allow; changed in place."""
    updaters = [manager for manager in all_of if manager.operation == managers.UPDATE]
    excess = len(updaters) - UPDATERS_MAX
    if excess <= 0:
        return all_of
    updaters.sort(key=lambda manager: (all_of[manager].time, manager.identifier))
    first: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        version = all_of[manager].version
        if version in first:
            _merge(all_of, manager, first[version])
            excess -= 1
        else:
            first[version] = manager
    return all_of


def _merge(all_of: Managers, manager: Manager, first: Manager) -> None:
    """Make a manager part of its version's bucket, which `first`, older than it, begins."""
    managed = all_of[manager]
    bucket = Manager(ANCIENT, managers.UPDATE, managed.version)
    before = all_of.get(bucket)
    if before is None:
        before = all_of.pop(first)
    all_of.pop(manager, None)
    fields = field_sets.union(managed.fields, before.fields)
    all_of[bucket] = Managed(fields, managed.version, managed.time)
