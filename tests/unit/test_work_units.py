"""How tests are distributed over workers, and which of many alike are left to `make test-all`."""

import pytest

import sampling
import work_units


def test_a_unit_is_a_file_or_a_family_of_one() -> None:
    """Only captures are distributed by family."""
    recorded = "tests/conformance/test_recorded_rest.py"
    units = {
        f"{recorded}::test_recorded[kinds:job-status]": f"{recorded}:kinds",
        f"{recorded}::test_recorded[custom-resources:a[b:c]]": f"{recorded}:custom-resources",
        f"{recorded}::test_recorded_gaps_are_cases": recorded,
        "tests/fuzz/test_fuzz_raw.py::test_path[GET:1]": "tests/fuzz/test_fuzz_raw.py",
    }
    assert {nodeid: work_units.unit_of(nodeid) for nodeid in units} == units


def test_units_that_wait_alternate_with_others() -> None:
    """Large units come before small ones, and those of unit tests last."""
    tests = {
        "tests/unit/a.py": 9,
        "tests/e2e/a.py": 1,
        "tests/fuzz/a.py": 2,
        "tests/e2e/b.py": 2,
        "tests/conformance/a.py:f": 3,
    }
    assert work_units.in_order(tests) == [
        "tests/e2e/b.py",
        "tests/conformance/a.py:f",
        "tests/e2e/a.py",
        "tests/fuzz/a.py",
        "tests/unit/a.py",
    ]


def test_one_in_several_is_not_slow() -> None:
    """The first of each share; a parameter keeps its marks and its name."""
    given = [1, 2, 3, pytest.param(4, id="four", marks=pytest.mark.real)]
    assert sampling.one_in(2, given) == [
        1,
        pytest.param(2, marks=pytest.mark.slow),
        3,
        pytest.param(4, id="four", marks=[pytest.mark.real, pytest.mark.slow]),
    ]
