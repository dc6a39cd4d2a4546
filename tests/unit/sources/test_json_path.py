"""JSONPath queries: their steps are limited, and they run in threads of their own."""

import json
import threading

import pytest

from podscaler.sources.protocol import InvalidValue
from podscaler.sources.systems import json_path

DOCUMENT = {"limit": 2, "big": [0] * 50, "queues": [{"name": f"q{number}", "length": number} for number in range(50)]}
TOO_MANY = "^jsonPath takes more than 1000 steps$"


def _number(path: str, document: object = DOCUMENT) -> object:
    return json_path.number_in(json.dumps(document).encode(), json_path.compile_path(path))


def _nested(depth: int) -> object:
    return [_nested(depth - 1)] if depth else 0


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_path, "STEPS_MAX", 1000)
    monkeypatch.setattr(json_path, "CONTAINER_STEPS", 100)


@pytest.mark.parametrize(
    ("path", "number"),
    [
        pytest.param("$.queues[7].length", 7, id="names and an index"),
        pytest.param("$.queues[7]['length', 'other']", 7, id="two selectors"),
        pytest.param("$.queues[?@.name == 'q7'].length", 7, id="a filter"),
        pytest.param("$.queues[?@.length == $.limit].length", 2, id="a filter with a number of the document"),
        pytest.param("$.queues[?length(@.name) == 2 && @.length > 8].length", 9, id="a filter with a function"),
        pytest.param("$..limit", 2, id="descendants"),
    ],
)
def test_queries_with_few_steps(path: str, number: int) -> None:
    """They select as RFC 9535 says, and the same query may be used again."""
    assert [_number(path), _number(path)] == [number, number]


@pytest.mark.parametrize(
    ("path", "document"),
    [
        pytest.param("$" + "[*,*]" * 20 + ".x", _nested(20), id="each value twice in each segment"),
        pytest.param("$.queues[?count($.queues[*]) > 99]", DOCUMENT, id="the document for each value"),
        pytest.param(
            "$.queues[?count(@[*,*][*,*]) > 999]", {"queues": [[[0] * 9] * 9] * 99}, id="many values in a filter"
        ),
        pytest.param("$.queues[?$.big == $.queues]", DOCUMENT, id="comparisons of lists of the document"),
        pytest.param("$.queues[?" + "1 == 2 || " * 20 + "1 == 2]", DOCUMENT, id="a filter of many parts"),
    ],
)
def test_queries_with_too_many_steps(path: str, document: object) -> None:
    """They fail, whatever they would select."""
    with pytest.raises(InvalidValue, match=TOO_MANY):
        _number(path, document)


async def test_evaluations_have_their_own_threads() -> None:
    """One that takes long leaves the threads of others free."""
    thread = await json_path.run_in_thread(threading.current_thread)
    assert thread.name.startswith("json-path")
