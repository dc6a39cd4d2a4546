"""Defines the users of the API and the names of system users and groups (k8s.io/apiserver's user.Info).

`auth` creates a `User` for each request; authorization and the access reviews read it. A new attribute is also shown by
`apiserver.handlers.reviews.user_info` and sent to webhooks by `apiserver.webhooks.admission_reviews`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podscaler.api.machinery import names

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS_NAME = "system:anonymous"
ACCOUNT_PREFIX = "system:serviceaccount:"
ALL_ACCOUNTS = "system:serviceaccounts"
NODE_PREFIX = "system:node:"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the API.

    Attributes:
        name: such as `admin` or `system:serviceaccount:NAMESPACE:NAME`.
        groups: the groups without system:authenticated, to which all authenticated users belong.
        uid: identifies the user across renames, empty if unknown.
        extra: further attributes of the authentication, lists of texts by key.
        is_known: whether the user was authenticated; False for the assumed user of an access review.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_known: bool = True

    @property
    def all_groups(self) -> tuple[str, ...]:
        """The groups, including system:authenticated for an authenticated user."""
        if not self.is_known or UNAUTHENTICATED in self.groups or AUTHENTICATED in self.groups:
            return self.groups
        return (*self.groups, AUTHENTICATED)


ADMIN = User("admin", (MASTERS,))
SYSTEM = User("system:apiserver", (MASTERS,))
"""The user of controllers and node in the same process; kube-apiserver uses it for itself."""
ANONYMOUS = User(ANONYMOUS_NAME, (UNAUTHENTICATED,))


def account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{ACCOUNT_PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of the service accounts of a namespace."""
    return ALL_ACCOUNTS, f"{ALL_ACCOUNTS}:{namespace}"


def parse_account_name(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account with this user name; None for other users."""
    if not name.startswith(ACCOUNT_PREFIX):
        return None
    namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition(":")
    is_valid = not (names.dns_label_errors(namespace) or names.dns_subdomain_errors(account))
    return (namespace, account) if is_valid else None
