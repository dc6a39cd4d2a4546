"""Lists: selection, pages, consistency and the rules of resourceVersion."""

import base64
import json

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.listing import ContinueExpired, ListPage
from podscaler.controlplane.storage.options import ListOptions
from podscaler.testing.kinds import obj

GADGETS = "gadgets.example.com"


def names(page: ListPage) -> list[str]:
    """The names in a page."""
    return [entry.name for entry in page.entries]


async def fill(objects: Objects) -> list[Entry]:
    """Gadgets a to d: two with app=x, one with app=y, one without labels; c is red."""
    return [
        await objects.create(GADGETS, obj("a", labels={"app": "x", "tier": "f"}, colour="grey")),
        await objects.create(GADGETS, obj("b", labels={"app": "x"}, colour="grey")),
        await objects.create(GADGETS, obj("c", labels={"app": "y"}, colour="red")),
        await objects.create(GADGETS, obj("d", colour="grey")),
    ]


def token(**parts: object) -> str:
    """A continue token with these parts."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(ListOptions(), "abcd", id="all"),
        pytest.param(ListOptions(label_selector="app=x"), "ab", id="label"),
        pytest.param(ListOptions(label_selector="app in (x,y),tier!=f"), "bc", id="several labels"),
        pytest.param(ListOptions(label_selector="app=x,app=y"), "", id="labels that exclude each other"),
        pytest.param(ListOptions(field_selector="metadata.name=b"), "b", id="name"),
        pytest.param(ListOptions(field_selector="metadata.namespace=default"), "abcd", id="namespace"),
        pytest.param(ListOptions(field_selector="spec.colour!=grey"), "c", id="field of the kind"),
        pytest.param(ListOptions(label_selector="app", field_selector="spec.colour=grey"), "ab", id="both"),
        pytest.param(ListOptions(limit=500), "abcd", id="limit over"),
        pytest.param(ListOptions(limit=4), "abcd", id="limit exact"),
        pytest.param(ListOptions(limit=1, resource_version="0"), "abcd", id="any version ignores the limit"),
    ],
)
async def test_selected_objects(objects: Objects, options: ListOptions, expected: str) -> None:
    """Labels and fields decide together; the whole selection is one page here."""
    await fill(objects)
    page = objects.list(GADGETS, "default", options=options)
    assert (names(page), page.continue_token, page.remaining, page.revision) == (
        list(expected),
        "",
        None,
        objects.revision,
    )


async def test_namespaces_apart_and_together(objects: Objects) -> None:
    """A namespaced list has its namespace only, one over all namespaces has all in key order."""
    await objects.create("namespaces", obj("other", namespace=""))
    await objects.create(GADGETS, obj("b", namespace="other"))
    await objects.create(GADGETS, obj("a"))
    found = [
        [entry.key for entry in objects.list(GADGETS, namespace).entries] for namespace in ("", "default", "other")
    ]
    assert found == [["default/a", "other/b"], ["default/a"], ["other/b"]]


async def test_pages_tell_how_to_go_on(objects: Objects) -> None:
    """A page that is not the last has a token and what remains; the token gives the rest."""
    await fill(objects)
    first = objects.list(GADGETS, "default", options=ListOptions(limit=2))
    rest = objects.list(GADGETS, "default", options=ListOptions(limit=2, continue_token=first.continue_token))
    assert (names(first), first.remaining, names(rest), rest.continue_token) == (["a", "b"], 2, ["c", "d"], "")


async def test_token_has_upstreams_form(objects: Objects) -> None:
    """The token is what upstream would send: version, revision, and the key after the last one."""
    await fill(objects)
    page = objects.list(GADGETS, "default", options=ListOptions(limit=2))
    raw = base64.urlsafe_b64decode(page.continue_token + "==")
    assert json.loads(raw) == {"v": "meta.k8s.io/v1", "rv": objects.revision, "start": "b\0"}


async def test_filtered_pages_do_not_count_the_rest(objects: Objects) -> None:
    """With a selector nobody knows how many remain; the token is there as long as there is anything left to look at."""
    await fill(objects)
    page = objects.list(GADGETS, "default", options=ListOptions(limit=2, label_selector="app=x"))
    assert (names(page), page.remaining, bool(page.continue_token)) == (["a", "b"], None, True)


async def test_pages_of_one_list_fit_together(objects: Objects) -> None:
    """What is created, changed and deleted between two pages does not show: they are of the first page's revision."""
    before = await fill(objects)
    first = objects.list(GADGETS, "default", options=ListOptions(limit=2))
    await objects.delete(GADGETS, "default", "c")
    await objects.update(GADGETS, "default", "d", lambda old: {**old, "spec": {"colour": "blue"}})
    await objects.create(GADGETS, obj("bb"))
    rest = objects.list(GADGETS, "default", options=ListOptions(limit=5, continue_token=first.continue_token))
    assert (rest.entries, rest.revision) == (before[2:], first.revision)
    assert names(objects.list(GADGETS, "default")) == ["a", "b", "bb", "d"]


async def test_exact_versions_show_the_past(objects: Objects) -> None:
    """With match Exact, or a version with a limit, the list is as it was then."""
    made = await fill(objects)
    await objects.delete(GADGETS, "default", "a")
    then = str(made[1].revision)
    for options in (
        ListOptions(resource_version=then, resource_version_match="Exact"),
        ListOptions(resource_version=then, limit=10),
    ):
        page = objects.list(GADGETS, "default", options=options)
        assert (page.entries, page.revision) == (made[:2], made[1].revision)


async def test_not_older_than_is_the_newest(objects: Objects) -> None:
    """A version without Exact is a lower bound, so the newest state answers it, however old it is."""
    made = await fill(objects)
    await objects.compact()
    for match in ("", "NotOlderThan"):
        options = ListOptions(resource_version=str(made[0].revision), resource_version_match=match)
        assert names(objects.list(GADGETS, "default", options=options)) == list("abcd")


async def test_future_version_is_a_timeout(objects: Objects) -> None:
    """A version that is still to come is a 504 that says to retry."""
    with pytest.raises(StatusError) as refused:
        objects.list(GADGETS, options=ListOptions(resource_version="999"))
    assert refused.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"Timeout: Too large resource version: 999, current: {objects.revision}",
        "reason": "Timeout",
        "details": {
            "retryAfterSeconds": 1,
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        },
        "code": 504,
    }
    assert refused.value.headers == {"Retry-After": "1"}


async def test_compacted_versions_are_expired(objects: Objects) -> None:
    """The past that is no longer kept is a 410; a page's token then offers to go on with the present."""
    made = await fill(objects)
    first = objects.list(GADGETS, "default", options=ListOptions(limit=2))
    await objects.delete(GADGETS, "default", "c")
    await objects.compact()
    exact = ListOptions(resource_version=str(made[0].revision), resource_version_match="Exact")
    with pytest.raises(StatusError, match=r"^The resourceVersion for the provided list is too old\.$"):
        objects.list(GADGETS, "default", options=exact)
    with pytest.raises(ContinueExpired) as refused:
        objects.list(GADGETS, "default", options=ListOptions(continue_token=first.continue_token))
    status = refused.value.to_status()
    assert (status["code"], status["reason"]) == (410, "Expired")
    rest = objects.list(GADGETS, "default", options=ListOptions(continue_token=status["metadata"]["continue"]))
    assert (names(rest), rest.revision) == (["d"], objects.revision)


WHERE = "resourceVersionMatch"
INVALID = 'ListOptions.meta.k8s.io "" is invalid: '


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        pytest.param(
            ListOptions(resource_version_match="NotOlderThan"),
            422,
            f"{INVALID}{WHERE}: Forbidden: {WHERE} is forbidden unless resourceVersion is provided",
            id="match without version",
        ),
        pytest.param(
            ListOptions(resource_version="0", resource_version_match="Exact"),
            422,
            f'ListOptions.meta.k8s.io "" is invalid: {WHERE}: Forbidden: {WHERE} "exact" is forbidden for '
            'resourceVersion "0"',
            id="exactly any",
        ),
        pytest.param(
            ListOptions(resource_version="1", resource_version_match="Odd"),
            422,
            f'ListOptions.meta.k8s.io "" is invalid: {WHERE}: Unsupported value: "Odd": supported values: "Exact", '
            '"NotOlderThan", ""',
            id="unknown match",
        ),
        pytest.param(
            ListOptions(send_initial_events=True),
            422,
            f"{INVALID}sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            id="initial events in a list",
        ),
        pytest.param(
            ListOptions(resource_version="5", continue_token="x"),
            400,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
            id="version with a token that is none",
        ),
        pytest.param(
            ListOptions(resource_version="abc"),
            400,
            'invalid resource version: resourceVersion: Invalid value: "abc": '
            'strconv.ParseUint: parsing "abc": invalid syntax',
            id="version that is no number",
        ),
        pytest.param(
            ListOptions(label_selector="=x"),
            400,
            "found '=', expected: !, identifier, or 'end of string'",
            id="bad labels",
        ),
        pytest.param(ListOptions(field_selector="spec.x=1"), 400, "field label not supported: spec.x", id="bad field"),
    ],
)
async def test_options_that_make_no_sense(objects: Objects, options: ListOptions, code: int, message: str) -> None:
    """Options are refused in upstream's words."""
    with pytest.raises(StatusError) as refused:
        objects.list(GADGETS, options=options)
    assert (refused.value.code, refused.value.message) == (code, message)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("zzz", "invalid character 'Ï' looking for beginning of value", id="no JSON"),
        pytest.param("!", "illegal base64 data at input byte 0", id="no base64"),
        pytest.param("e30=", "illegal base64 data at input byte 3", id="padded"),
        pytest.param(
            token(v="meta.k8s.io/v1", rv="5", start="b"),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            id="a version that is text",
        ),
        pytest.param(token(v="meta.k8s.io/v1", rv=5, start="../b"), "../b", id="a way out"),
        pytest.param(token(), "server does not recognize this encoded version ", id="no version"),
        pytest.param(token(v=None), "server does not recognize this encoded version ", id="null version"),
        pytest.param(token(v="v0"), "server does not recognize this encoded version v0", id="other version"),
        pytest.param(
            token(v="meta.k8s.io/v1", start="b\0"),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            id="no revision",
        ),
        pytest.param(
            token(v="meta.k8s.io/v1", rv=1), "encoded start key empty (version meta.k8s.io/v1)", id="no start"
        ),
    ],
)
async def test_tokens_that_are_none(objects: Objects, text: str, why: str) -> None:
    """A token that we did not write is a 400 that says what is wrong with it."""
    with pytest.raises(StatusError) as refused:
        objects.list(GADGETS, options=ListOptions(continue_token=text))
    message = f"invalid continue token: continue key is not valid: {why}"
    assert (refused.value.code, refused.value.message) == (400, message)
