"""Events and their two faces."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog

_CORE = catalog.get("events")
_NEW = catalog.get("events.events.k8s.io")
_NOW_NS = 1_767_225_600 * 10**9
_ABOUT = {"kind": "Pod", "namespace": "ns", "name": "p"}


def _event(**parts: Any) -> dict[str, Any]:
    event = {"metadata": {"name": "e", "namespace": "ns"}, "involvedObject": _ABOUT, **parts}
    _CORE.versions[0].default(event)
    return event


def test_faces_convert_into_each_other() -> None:
    """An event of the new API comes back as it was written, stored under the old names."""
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "ns"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
        "reportingController": "c.example.com",
        "reportingInstance": "c-1",
        "action": "Scaling",
        "reason": "R",
        "regarding": _ABOUT,
        "note": "n",
        "type": "Normal",
    }
    [version] = _NEW.versions
    stored = version.to_storage(event)
    assert [stored["involvedObject"], stored["message"], stored["reportingComponent"]] == [
        _ABOUT,
        "n",
        "c.example.com",
    ]
    shown = version.from_storage(stored)
    empty = {"deprecatedSource": {}, "deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None}
    assert shown == {**event, **empty}


@pytest.mark.parametrize(
    ("parts", "faults"),
    [
        pytest.param({}, [], id="fine"),
        pytest.param(
            {"involvedObject": {**_ABOUT, "namespace": "other"}},
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
            id="other namespace",
        ),
        pytest.param(
            {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingComponent": "c", "action": "a", "reason": "r"},
            ["reportingInstance: Required value"],
            id="new style",
        ),
    ],
)
def test_core_events(parts: dict[str, Any], faults: list[str]) -> None:
    """An event lives in the namespace of its object; if it says when, it says by whom."""
    assert [str(fault) for fault in _CORE.strategy.validate(_event(**parts), None)] == faults


def test_events_about_cluster_objects_live_in_default() -> None:
    """An event about an object without a namespace belongs to the namespace default."""
    event = _event(involvedObject={"kind": "Node", "name": "n"})
    event["metadata"]["namespace"] = "default"
    assert _CORE.strategy.validate(event, None) == []


def test_the_new_face_demands_more() -> None:
    """When, by whom and what was done must be said; the deprecated fields must not be."""
    reported = {"reportingComponent": "a b", "eventTime": "2026-01-01T00:00:00.000000Z"}
    event = _event(**reported, type="Normal", count=1, series={"count": 1})
    found = [str(fault) for fault in _NEW.strategy.validate(event, None)]
    assert found[0].startswith('reportingController: Invalid value: "a b": name part must consist of')
    assert found[1:] == [
        "reportingInstance: Required value",
        "action: Required value",
        "reason: Required value",
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
        'count: Invalid value: "": needs to be unset',
    ]


def test_selectable_fields_differ() -> None:
    """Each face is selected by its own names."""
    event = _event(reason="R", type="Warning", source={"component": "c"})
    assert [_CORE.fields(event)["involvedObject.name"], _CORE.fields(event)["source"]] == ["p", "c"]
    assert _NEW.fields(event)["regarding.name"] == "p"
    assert not set(_NEW.fields(event)) & {"involvedObject.name", "source"}


@pytest.mark.parametrize(
    ("parts", "last", "first", "count"),
    [
        pytest.param(
            {"firstTimestamp": "2025-12-31T23:50:00Z", "lastTimestamp": "2025-12-31T23:59:00Z", "count": 3},
            "60s",
            "10m",
            3,
            id="counted",
        ),
        pytest.param({"eventTime": "2025-12-31T23:59:00.000000Z"}, "60s", "60s", 1, id="once"),
        pytest.param(
            {
                "eventTime": "2025-12-31T23:50:00.000000Z",
                "series": {"count": 5, "lastObservedTime": "2025-12-31T23:59:59.000000Z"},
            },
            "1s",
            "10m",
            5,
            id="series",
        ),
        pytest.param({}, "<unknown>", "<unknown>", 1, id="no time"),
    ],
)
def test_table(parts: dict[str, Any], last: str, first: str, count: int) -> None:
    """Last and first observation and the count come from whichever fields are there."""
    row = _CORE.printer.row(_event(**parts), _NOW_NS)
    assert [row[0], row[7], row[8], row[3]] == [last, first, count, "pod/p"]


def test_source_names_component_and_host() -> None:
    """The reporter is the source's component, or else the reporting controller, with host or instance."""
    events = [
        _event(source={"component": "kubelet", "host": "n"}),
        _event(reportingComponent="c", reportingInstance="c-1"),
        _event(),
    ]
    assert [_CORE.printer.row(event, _NOW_NS)[5] for event in events] == ["kubelet, n", "c, c-1", ""]
