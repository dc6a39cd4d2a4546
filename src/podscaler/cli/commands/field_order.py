"""Fields in the order in which somebody wrote them, after a program has put them into its own.

Called by commands that rewrite manifests. Nothing but the order of keys changes.
"""

from typing import Any


def like(value: Any, model: Any) -> Any:
    """`value` with its fields in the order of `model`, at every depth.

    A field that the model lacks follows the field that it followed in `value`. Items of lists are compared by index.
    """
    if isinstance(value, dict) and isinstance(model, dict):
        return {key: like(value[key], model.get(key)) for key in _order(list(value), model)}
    if isinstance(value, list) and isinstance(model, list):
        models = model + [None] * (len(value) - len(model))
        return [like(item, models[index]) for index, item in enumerate(value)]
    return value


def _order(keys: list[str], model: dict[str, Any]) -> list[str]:
    following: dict[str | None, list[str]] = {}
    known: str | None = None
    for key in keys:
        if key in model:
            known = key
        else:
            following.setdefault(known, []).append(key)
    ordered = following.get(None, [])
    for key in model:
        if key in keys:
            ordered += [key, *following.get(key, [])]
    return ordered
