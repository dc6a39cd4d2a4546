"""The annotation that names the real ports of a pod or Service, which users can write, too."""

from typing import Any

import pytest

from podscaler.api import port_map


@pytest.mark.parametrize(
    ("annotation", "ports"),
    [
        pytest.param('{"80": 20080, "443": 20443}', {80: 20080, 443: 20443}, id="two"),
        pytest.param('{"80": 1e400, "81": 20081}', {81: 20081}, id="infinity"),
        pytest.param('{"80": true, "81": 2.0, "82": "3", "83": null}', {}, id="other types"),
        pytest.param('{"80": 0, "81": 65536, "x": 5, "": 6}', {}, id="no ports"),
        pytest.param("[" * 100_000, {}, id="too deep"),
        pytest.param("[1]", {}, id="a list"),
        pytest.param("{", {}, id="no JSON"),
        pytest.param("", {}, id="empty"),
    ],
)
def test_what_is_no_port_map_is_left_out(annotation: str, ports: dict[int, int]) -> None:
    """Nothing in it fails those who read it."""
    obj: dict[str, Any] = {"metadata": {"annotations": {port_map.ANNOTATION: annotation}}}
    assert port_map.of(obj) == ports


def test_written_and_read() -> None:
    """The text of a map is read as the map."""
    ports = {80: 20080, 443: 20443}
    assert port_map.of({"metadata": {"annotations": {port_map.ANNOTATION: port_map.text(ports)}}}) == ports
