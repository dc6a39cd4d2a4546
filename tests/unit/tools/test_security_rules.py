"""Where the rules of ruff about security (S) are switched off in src, it is said why."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
_EXCEPTION = re.compile(r"# noqa: *(?P<rules>[A-Z0-9, ]+?)(?:$| *[-:]* +(?P<reason>\S.*))")


def test_every_exception_has_its_reason() -> None:
    """A `noqa` names its rules and says why, in the same line; none is general."""
    without = []
    for path in SOURCES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if "noqa" in line:
                match = _EXCEPTION.search(line)
                if match is None or not match["reason"]:
                    without.append(f"{path.relative_to(ROOT)}:{number}")
    assert without == []


def test_asserts_only_narrow_types() -> None:
    """An assertion in src tells mypy what is known anyway: that a value is there, or its class."""
    others = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assert) and not _narrows(node.test):
                others.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node.test)}")
    assert others == []


def _narrows(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
    return False


def test_no_rule_about_security_is_off_in_the_whole_tree() -> None:
    """Only assertions are, for the tests; what is off for parts of src is jitter, and names that are no secrets."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    off = {
        pattern: [rule for rule in rules if rule.startswith("S") and not rule.startswith("SIM")]
        for pattern, rules in lint["per-file-ignores"].items()
        if pattern.startswith("src/")
    }
    assert "S" in lint["select"]
    assert [rule for rule in lint["ignore"] if rule.startswith("S")] == ["S101"]
    assert {rule for rules in off.values() for rule in rules} == {"S311"}
