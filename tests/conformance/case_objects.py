"""The objects that transcripts of kubectl begin with: their names in one case, and where they are created.

Called by `golden_kubectl` and `kubectl_session`.
"""

from typing import Any

PLURALS = {"Service": "services", "NodeMetrics": "nodes", "PodMetrics": "pods"}


def filled(value: Any, ident: str) -> Any:
    """`value` with what stands for the case's namespace and for its names replaced."""
    if isinstance(value, str):
        return value.replace("{ns}", f"ns-{ident}").replace("{id}", ident)
    if isinstance(value, dict):
        return {key: filled(item, ident) for key, item in value.items()}
    return [filled(item, ident) for item in value] if isinstance(value, list) else value


def path_of(obj: dict[str, Any], plural: str = "") -> str:
    """The collection of an object; `plural` is that of its kind where it cannot be guessed."""
    version, kind = obj["apiVersion"], obj["kind"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = obj["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{base}{scope}/{plural or PLURALS.get(kind, f'{kind.lower()}s')}"
