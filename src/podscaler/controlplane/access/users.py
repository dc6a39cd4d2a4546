"""Who sent a request: names and groups.

Made by `tokens`, read by `rules` and the self reviews of `server`.
"""

from dataclasses import dataclass

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the API; `groups` without system:authenticated, to which everyone known belongs."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def all_groups(self) -> tuple[str, ...]:
        """The groups as the API shows them."""
        return (*self.groups, AUTHENTICATED)


ADMIN = User("admin", (MASTERS,))
