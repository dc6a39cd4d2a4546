"""Two lists of tolerations as one, without those that others of the list cover.

Called by `pod_classes`.

Source: upstream's merging of tolerations.
"""

from collections.abc import Sequence

from podscaler.api.resource.resources import Object


def merged(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """`first`, then `second`; of equal ones the first stays, of others the one that covers more."""
    listed = [*first, *second]
    found: list[Object] = []
    for index, one in enumerate(listed):
        later = (other for other in listed[index + 1 :] if other != one)
        if not any(_covers(other, one) for other in found) and not any(_covers(other, one) for other in later):
            found.append(one)
    return found


def _covers(wide: Object, one: Object) -> bool:
    """Whether all that `one` tolerates is tolerated by `wide`."""
    if wide == one:
        return True
    is_for_all_keys = not wide.get("key") and wide.get("operator") == "Exists"
    if wide.get("key", "") != one.get("key", "") and not is_for_all_keys:
        return False
    if wide.get("effect") and wide["effect"] != one.get("effect", ""):
        return False
    if wide.get("effect") == "NoExecute" and not _lasts_as_long(wide, one):
        return False
    if wide.get("operator") == "Exists":
        return True
    return one.get("operator") == "Equal" and wide.get("value", "") == one.get("value", "")


def _lasts_as_long(wide: Object, one: Object) -> bool:
    limit_s, wanted_s = wide.get("tolerationSeconds"), one.get("tolerationSeconds")
    return limit_s is None or (wanted_s is not None and wanted_s <= limit_s)
