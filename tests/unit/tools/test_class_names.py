"""The check of public class names finds those that stand twice and are not listed."""

from pathlib import Path

import class_names
import pytest

PAGE = """# Contributing

## Class names that stand twice

| name | modules | reason |
|---|---|---|
| `Scale` | two | a reason |

## Changes

| `Other` | is in another section |
"""


@pytest.mark.parametrize(
    ("second", "faults"),
    [
        ("class Scale: ...", []),
        ("class Scale: ...\nclass _Plan: ...", []),
        ("class Scale:\n    class Plan: ...", []),
        ("class Scale: ...\nclass Plan: ...", ["class Plan stands in one.py, package/two.py"]),
        ("", ["class Scale is listed in CONTRIBUTING.md, but stands once"]),
    ],
    ids=["listed", "private", "nested", "not listed", "listed in vain"],
)
def test_findings(tmp_path: Path, second: str, faults: list[str]) -> None:
    """A public class on the top level of two modules is a finding unless it is listed."""
    (tmp_path / "package").mkdir()
    (tmp_path / "one.py").write_text("class Scale: ...\nclass Plan: ...\nclass _Plan: ...\n", encoding="utf-8")
    (tmp_path / "package" / "two.py").write_text(second, encoding="utf-8")
    assert class_names.findings(tmp_path, PAGE) == faults
