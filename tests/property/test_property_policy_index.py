"""The index of roles and bindings against an evaluation that looks at everything each time."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podscaler.controlplane.auth.authorizer import Attributes, Authorizer
from podscaler.controlplane.auth.policy_index import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    PolicyIndex,
)
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage import entries

Object = dict[str, Any]
NAMES = st.sampled_from(("a", "b"))
NAMESPACES = st.sampled_from(("n", "m"))
VERBS = st.sampled_from(("get", "list", "*"))
RESOURCES = st.sampled_from(("pods", "pods/log", "*/log", "*"))
URLS = st.sampled_from(("/x", "/x/*", "*"))
SOME = {"min_size": 1, "max_size": 2}

ON_RESOURCES = st.fixed_dictionaries(
    {
        "verbs": st.lists(VERBS, **SOME),
        "apiGroups": st.lists(st.sampled_from(("", "apps", "*")), **SOME),
        "resources": st.lists(RESOURCES, **SOME),
        "resourceNames": st.lists(NAMES, max_size=1),
    }
)
ON_PATHS = st.fixed_dictionaries({"verbs": st.lists(VERBS, **SOME), "nonResourceURLs": st.lists(URLS, **SOME)})
SUBJECTS = st.one_of(
    st.fixed_dictionaries({"kind": st.sampled_from(("User", "Group")), "name": NAMES}),
    st.fixed_dictionaries({"kind": st.just("ServiceAccount"), "name": NAMES}, optional={"namespace": NAMESPACES}),
)
ROLES_AND_BINDINGS = st.one_of(
    st.tuples(st.just(ROLES), NAMESPACES, NAMES, st.fixed_dictionaries({"rules": st.lists(ON_RESOURCES, max_size=2)})),
    st.tuples(
        st.just(CLUSTER_ROLES),
        st.just(""),
        NAMES,
        st.fixed_dictionaries({"rules": st.lists(ON_RESOURCES | ON_PATHS, max_size=2)}),
    ),
    st.tuples(
        st.sampled_from((ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)),
        NAMESPACES,
        NAMES,
        st.fixed_dictionaries(
            {
                "roleRef": st.fixed_dictionaries({"kind": st.sampled_from(("Role", "ClusterRole")), "name": NAMES}),
                "subjects": st.lists(SUBJECTS, max_size=2),
            }
        ),
    ),
)
CHANGES = st.lists(st.tuples(ROLES_AND_BINDINGS, st.booleans()), max_size=12)
USERS = st.one_of(
    st.builds(User, NAMES, st.lists(NAMES, max_size=2).map(tuple)),
    st.builds(lambda namespace, name: User(f"system:serviceaccount:{namespace}:{name}"), NAMESPACES, NAMES),
)
WANTED = st.one_of(
    st.builds(
        Attributes,
        st.sampled_from(("get", "list")),
        group=st.sampled_from(("", "apps")),
        resource=st.just("pods"),
        subresource=st.sampled_from(("", "log")),
        namespace=st.sampled_from(("", "n", "m")),
        name=st.sampled_from(("", "a", "b")),
    ),
    st.builds(Attributes, st.just("get"), path=st.sampled_from(("/x", "/x/y", "/y"))),
)


@given(CHANGES, USERS, WANTED)
def test_the_index_says_what_everything_says(changes: list[Any], user: User, wanted: Attributes) -> None:
    """After any changes the index allows exactly what a look at all roles and bindings allows."""
    index, stored = PolicyIndex(), {}
    for (resource, namespace, name, content), is_kept in changes:
        home = "" if resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS) else namespace
        metadata = {"name": name} | ({"namespace": home} if home else {})
        entry = entries.from_object(resource, {"metadata": metadata, **content}, 1)
        if is_kept:
            index.put(entry)
            stored[resource, home, name] = content
        elif stored.pop((resource, home, name), None) is not None:
            index.remove(entry)
    assert Authorizer(index).decide(user, wanted).allowed == naively_allowed(stored, user, wanted)


def naively_allowed(stored: dict[tuple[str, str, str], Object], user: User, wanted: Attributes) -> bool:
    """One look at every binding, as the documentation describes it."""
    for (resource, namespace, _), binding in stored.items():
        if resource not in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            continue
        if namespace and namespace != wanted.namespace:
            continue
        if not any(is_subject(subject, user, namespace) for subject in binding["subjects"]):
            continue
        reference = binding["roleRef"]
        key = (ROLES, namespace) if reference["kind"] == "Role" else (CLUSTER_ROLES, "")
        role = stored.get((*key, reference["name"]))
        if role is not None and any(is_met(rule, wanted) for rule in role["rules"]):
            return True
    return False


def is_subject(subject: Object, user: User, namespace: str) -> bool:
    """Whether the subject is the user."""
    if subject["kind"] == "User":
        return bool(subject["name"] == user.name)
    if subject["kind"] == "Group":
        return subject["name"] in user.all_groups
    home = subject.get("namespace") or namespace
    return bool(home) and user.name == f"system:serviceaccount:{home}:{subject['name']}"


def is_met(rule: Object, wanted: Attributes) -> bool:
    """Whether the rule allows it."""
    if not {wanted.verb, "*"} & set(rule["verbs"]):
        return False
    if not wanted.resource:
        urls = rule.get("nonResourceURLs", ())
        return any(url in ("*", wanted.path) or (url == "/x/*" and wanted.path.startswith("/x/")) for url in urls)
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    covering = {full, "*"} | ({f"*/{wanted.subresource}"} if wanted.subresource else set())
    if not covering & set(rule.get("resources", ())) or not {wanted.group, "*"} & set(rule.get("apiGroups", ())):
        return False
    return not rule["resourceNames"] or wanted.name in rule["resourceNames"]
