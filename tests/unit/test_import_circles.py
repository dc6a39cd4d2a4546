"""Arrows between modules point in one direction only."""

import graphlib
from collections.abc import Mapping

import grimp


def _find_circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules of which each imports the next; empty without a circle."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and for type hints count, too."""
    graph = grimp.build_graph("podscaler")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert "podscaler.base.clock" in imports["podscaler.base.workqueue"]
    assert _find_circle(imports) == []
