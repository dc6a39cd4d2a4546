"""The ClusterRole aggregation controller: writes the rules of ClusterRoles with an `aggregationRule`.

Such a role selects other ClusterRoles by label and gets their rules. `bootstrap` calls `aggregated_rules` before the
first request; `controlplane.controller_manager` runs the controller in a `control_loop.ControlLoop`.

Source: upstream's clusterrole-aggregation-controller.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from podscaler.api.machinery import selectors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLES
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.registry.registry import Registry

_ONLY_KEY = "all roles"
"""The key of the work queue that stands for all aggregated ClusterRoles."""


def aggregated_rules(role: Object, roles: Iterable[Object]) -> list[Any]:
    """The aggregated rules of `role`: those of the selected `roles`, sorted by role name, without repetition."""
    sorted_roles = sorted(roles, key=lambda other_role: str(other_role["metadata"]["name"]))
    rules: list[Any] = []
    for label_selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        selector = selectors.from_label_selector(label_selector)
        for other_role in sorted_roles:
            if other_role["metadata"]["name"] == role["metadata"]["name"]:
                continue
            if selector.matches(other_role["metadata"].get("labels") or {}):
                rules += [rule for rule in other_role.get("rules") or () if rule not in rules]
    return rules


class ClusterRoleAggregation(Reconciler[str]):
    """Reconciles all aggregated ClusterRoles in one sync, as a change of any ClusterRole may affect each: one key."""

    name = "clusterrole-aggregation-controller"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def watches(self) -> Sequence[Watched[str]]:
        """ClusterRoles."""
        return [Watched(CLUSTER_ROLES, lambda _event: [_ONLY_KEY])]

    def prime(self) -> Iterable[str]:
        """The one key."""
        return [_ONLY_KEY]

    async def sync(self, key: str) -> float | None:
        """Update the aggregated roles whose rules differ; returns None. Raises StatusError.

        A role that aggregates aggregated ones gets their new rules in the sync after the change of these.
        """
        del key
        roles = self._registry.list(CLUSTER_ROLES)
        for role in roles:
            if not role.get("aggregationRule"):
                continue
            new_rules = aggregated_rules(role, roles)
            if new_rules != (role.get("rules") or []):
                await self._registry.update(CLUSTER_ROLES, {**role, "rules": new_rules})
        return None
