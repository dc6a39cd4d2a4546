"""The form of entries: what each means, and the sentence for each that means nothing."""

from typing import Literal

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.machinery import instants, selectors
from podscaler.api.machinery.quantity import Quantity
from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.parsing import ENTRY_MAX_BYTES, EntryContext, ParsedEntry, parse_entry
from podscaler.controlplane.metrics.custom.schedule import Constant, Ramp
from podscaler.controlplane.metrics.custom.series import NamedObject, Outside, PodSelection, Series

KINDS = DescribableKinds(catalog.RESOURCES)
CREATED_NS = instants.parse("2026-01-01T00:00:00Z")


def place(api: Literal["custom", "external"] = "custom") -> EntryContext:
    """A ConfigMap of the namespace `shop`, created at the start of 2026."""
    return EntryContext(api, "shop", CREATED_NS, KINDS)


def only(text: str, api: Literal["custom", "external"] = "custom") -> Series:
    """The one series of an entry `rate`, which has no fault."""
    outcome = parse_entry("rate", text, place(api))
    assert outcome.problems == ()
    (series,) = outcome.series
    return series


def fault(text: str, api: Literal["custom", "external"] = "custom") -> str:
    """The one fault of an entry `rate`, which has no series."""
    outcome = parse_entry("rate", text, place(api))
    assert outcome.series == ()
    (found,) = outcome.problems
    assert found.path == "data[rate]"
    return found.text


def five() -> Constant:
    """The value 5."""
    return Constant(Quantity.parse("5"))


@pytest.mark.parametrize("text", ["5", "5\n", "{value: 5}", '{"value": "5"}', '{"value": 5}', "value: 5"], ids=repr)
def test_an_external_value_in_short(text: str) -> None:
    """An external metric needs no more than its value, bare or as a field, in YAML or JSON."""
    assert only(text, "external") == Series("rate", Outside(), {}, five())


def test_values_are_exact() -> None:
    """What was written is what will be told: no number is read as a float."""
    for text in ("0.10", "12345678901234567890.5", "1e3", "010", "1.5Gi"):
        series = only(f"value: {text}", "external")
        assert str(series.schedule.value_at(0)) == str(Quantity.parse(text))


def test_all_fields() -> None:
    """Every field has its place in the series."""
    text = """
    metric: http_requests:rate5m
    pods: app=web,tier in (front,back)
    labels: {verb: GET, 'yes': no}
    value: 5
    sharedBy: app=web
    window: 90s
    """
    assert only(text) == Series(
        "http_requests:rate5m",
        PodSelection(selectors.parse("app=web,tier in (front,back)")),
        {"verb": "GET", "yes": "no"},
        five(),
        selectors.parse("app=web"),
        90,
    )


def test_all_pods() -> None:
    """An empty selector describes all pods of the namespace."""
    assert only("{pods: '', value: 5}").subject == PodSelection(selectors.EVERYTHING)


@pytest.mark.parametrize(
    ("reference", "key", "name"),
    [
        ("Service/web", "services", "web"),
        ("service/web", "services", "web"),
        ("svc/web", "services", "web"),
        ("services/web", "services", "web"),
        ("Pod/web-0", "pods", "web-0"),
        ("Deployment/web", "deployments.apps", "web"),
        ("deployment.apps/web", "deployments.apps", "web"),
        ("Namespace", "namespaces", "shop"),
        ("ns/shop", "namespaces", "shop"),
    ],
)
def test_objects_are_named_as_for_kubectl(reference: str, key: str, name: str) -> None:
    """An object is named by its kind, plural or short name, with its group where one likes."""
    subject = only(f"{{object: {reference}, value: 5}}").subject
    assert isinstance(subject, NamedObject)
    assert (subject.key, subject.name) == (key, name)


def test_ramps_start_with_the_config_map() -> None:
    """A ramp begins when the ConfigMap was created, later by `after`, or at `start`."""
    zero, hundred, minute_ns = Quantity.parse("0"), Quantity.parse("100"), 60 * NANOSECONDS
    form = "{{{extra} ramp: {{from: 0, to: 100, over: 1m{after}}}}}"
    start_ns = instants.parse("2026-03-01T12:00:00Z")
    cases = {
        form.format(extra="", after=""): CREATED_NS,
        form.format(extra="", after=", after: 60s"): CREATED_NS + minute_ns,
        form.format(extra="start: 2026-03-01T13:00:00+01:00,", after=""): start_ns,
        form.format(extra="start: 2026-03-01T12:00:00Z,", after=", after: 1m"): start_ns + minute_ns,
    }
    for text, start in cases.items():
        assert only(text, "external").schedule == Ramp(zero, hundred, start, minute_ns)


def test_steps_are_after_the_start_or_at_an_instant() -> None:
    """Steps count from the ConfigMap's creation, or name their instant; `value` is what was before."""
    text = """
    value: 1
    steps:
    - {after: 30s, value: 10}
    - {at: "2026-01-01T00:01:00Z", value: 2}
    """
    found = only(text, "external").schedule
    values = [found.value_at(CREATED_NS + seconds * NANOSECONDS) for seconds in (0, 29, 30, 59, 60)]
    assert [str(value) for value in values] == ["1", "1", "10", "10", "2"]


def test_a_list_states_several_series() -> None:
    """An entry may be a list; an item that is wrong is told with its number, and the others count."""
    text = "[{labels: {queue: a}, value: 5}, {labels: {queue: b}, value: five}, 5]"
    outcome = parse_entry("depth", text, place("external"))
    assert [series.labels for series in outcome.series] == [{"queue": "a"}, {}]
    assert [found.path for found in outcome.problems] == ["data[depth][1]"]


def test_an_empty_list_states_nothing() -> None:
    """A list may be empty: there is no series then, and nothing wrong."""
    assert parse_entry("depth", "[]", place("external")) == ParsedEntry()


COMMON = "metric, labels, value, steps, ramp, start, sharedBy and window"
EITHER = "it must say what it describes: either `pods: SELECTOR` or `object: KIND/NAME`"
SCHEDULE = "it must have one of `value`, `steps` and `ramp`; with `steps`, `value` is what was before"
PATTERN = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", f'value: "" is not a quantity: {PATTERN}', id="nothing"),
        pytest.param("much", f'value: "much" is not a quantity: {PATTERN}', id="no quantity"),
        pytest.param("{}", SCHEDULE, id="no value"),
        pytest.param("{value: 1, ramp: {}}", SCHEDULE, id="two kinds of values"),
        pytest.param("{valeu: 1}", f'"valeu" is no field: known are {COMMON}', id="a field that does not exist"),
        pytest.param("{value: 1, pods: a=b}", f'"pods" is no field: known are {COMMON}', id="a field of the other API"),
        pytest.param(
            "{a: b", "it is neither YAML nor JSON: yaml: line 1: did not find expected ',' or '}'", id="no YAML"
        ),
        pytest.param("{value: 1, value: 2}", 'line 1: key "value" already set in map', id="a field twice"),
        pytest.param("value: [1]", "value must be a single value, not a list", id="a list of values"),
        pytest.param("value: {of: 1}", "value must be a single value, not a map", id="a map for a value"),
        pytest.param("{metric: '', value: 1}", "metric must not be empty", id="an empty name"),
        pytest.param("{metric: a/b, value: 1}", "metric: \"a/b\" may not contain '/'", id="a name with a slash"),
        pytest.param("{labels: a=b, value: 1}", "labels must be a map like {queue: worker}", id="labels as a selector"),
        pytest.param("{labels: {a: [b]}, value: 1}", "labels.a must be a single value, not a list", id="a label"),
        pytest.param("{window: 1500ms, value: 1}", "window must be whole seconds", id="a window of parts of seconds"),
        pytest.param(
            "{sharedBy: '=', value: 1}",
            "sharedBy: \"=\" is not a label selector: found '=', expected: !, identifier, or 'end of string'",
            id="no selector",
        ),
        pytest.param(
            "{start: soon, value: 1}", 'start: "soon" is not a time like 2026-01-31T12:00:00Z', id="no instant"
        ),
        pytest.param("steps: 5", "steps must be a list with at least one item", id="steps without a list"),
        pytest.param("steps: []", "steps must be a list with at least one item", id="no steps"),
        pytest.param("steps: [5]", "steps[0] must be a map with the fields after, at and value", id="a bare step"),
        pytest.param(
            "steps: [{after: 1s, value: 1}, {value: 2}]", "steps[1] must have either `after` or `at`", id="no time"
        ),
        pytest.param(
            "steps: [{after: 1s, at: 2026-01-01T00:00:00Z, value: 2}]",
            "steps[0] must have either `after` or `at`",
            id="two times",
        ),
        pytest.param("steps: [{after: 1s}]", "steps[0].value is missing", id="a step without a value"),
        pytest.param(
            "steps: [{after: 30, value: 1}]",
            'steps[0].after: "30" is not a duration like 90s or 1h30m',
            id="a duration without a unit",
        ),
        pytest.param(
            "steps: [{after: -1s, value: 1}]",
            'steps[0].after: "-1s" is not a duration like 90s or 1h30m',
            id="a negative duration",
        ),
        pytest.param(
            "steps: [{after: 1s, values: 1}]",
            '"values" is no field of steps[0]: known are after, at and value',
            id="a field of a step that does not exist",
        ),
        pytest.param("ramp: {to: 1, over: 1s}", "ramp.from is missing", id="a ramp from nowhere"),
        pytest.param("ramp: {from: 1, over: 1s}", "ramp.to is missing", id="a ramp to nowhere"),
        pytest.param("ramp: {from: 0, to: 1}", "ramp.over is missing", id="a ramp without a length"),
        pytest.param("ramp: {from: 0, to: 1, over: 0s}", "ramp.over must be more than 0s", id="a ramp of no length"),
        pytest.param(
            f"value: {'9' * 70}x", f'value: "{"9" * 60}..." is not a quantity: {PATTERN}', id="long texts are cut"
        ),
        pytest.param(
            f"value: {' ' * ENTRY_MAX_BYTES}1",
            f"it is longer than {ENTRY_MAX_BYTES} bytes: spread it over several entries",
            id="too long",
        ),
    ],
)
def test_faults(text: str, expected: str) -> None:
    """The sentence names the field and what would be right."""
    assert fault(text, "external") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("5", EITHER, id="only a value"),
        pytest.param("{pods: '', object: svc/web, value: 5}", EITHER, id="pods and an object"),
        pytest.param(
            "{object: Gateway/web, value: 5}",
            'object: "Gateway" is no kind that is served here and lives in a namespace',
            id="a kind that is not served",
        ),
        pytest.param(
            "{object: Node/here, value: 5}",
            'object: "Node" is no kind that is served here and lives in a namespace',
            id="a kind without namespaces",
        ),
        pytest.param(
            "{object: Namespace/other, value: 5}",
            "object: only the ConfigMap's own namespace (shop) can be described",
            id="another namespace",
        ),
        pytest.param("{object: svc, value: 5}", 'object: "svc" is not of the form KIND/NAME', id="no name"),
        pytest.param("{object: svc/a/b, value: 5}", 'object: "svc/a/b" is not of the form KIND/NAME', id="two names"),
        pytest.param(
            "{pods: {app: web}, value: 5}", "pods must be a single value, not a map", id="labels, no selector"
        ),
    ],
)
def test_faults_of_what_is_described(text: str, expected: str) -> None:
    """A custom metric must say which objects it describes, in words that the server knows."""
    assert fault(text) == expected
