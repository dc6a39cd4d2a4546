"""Sorts the versions of an API group by preference: `v10`, `v2`, `v1`, `v11beta2`, `v3alpha1`, `foo`.

Called by discovery and routing for groups of CustomResourceDefinitions and APIServices; the first version is the
preferred one of its group.

Source: the API documentation of version priority.
"""

import re

_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}


def sort_key(version: str) -> tuple[int, int, int, str]:
    """The sort key by which the most preferred version comes first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)  # after all _STAGES
    major, stage, minor = match.groups()
    return (_STAGES[stage], -int(major), -int(minor or 0), "")
