"""The modules and functions that docstrings and pages name exist, and callers import what they are said to call."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "podscaler"

PARTS = "|".join(sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()))

MODULE_PATH = re.compile(rf"`((?:{PARTS})(?:/(?!v\d)\w+)+(?:\.(?!py\b)\w+)*)(?:\.py)?`")
FULL_NAME = re.compile(r"`(podscaler(?:\.\w+)+)(?:\([^`]*\))?`")
CALLERS = re.compile(r"Called by (`[\w.]+`(?:(?:,| and|, and)(?: by)? `[\w.]+`)*)")


def texts() -> Iterator[tuple[str, str]]:
    """Every file that may name a module, by its path in the repository."""
    folders = [("src", "*.py"), ("tests", "*.py"), ("docs", "*.md")]
    paths = [path for folder, pattern in folders for path in (ROOT / folder).rglob(pattern)]
    for path in [*paths, *ROOT.glob("*.md")]:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


@cache
def modules() -> dict[str, Path]:
    """The modules of podscaler by their full names; packages by theirs."""
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


@cache
def tree(module: str) -> ast.Module:
    """A module, parsed."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def defined(body: list[ast.stmt]) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The names that statements define or import, each with the body of the class that it names."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node.body
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, []
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, []) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from ((each.id, []) for each in ast.walk(node) if isinstance(each, ast.Name))


def is_there(name: str) -> bool:
    """Whether a full name is a module, or something that a module defines."""
    parts = name.split(".")
    count = max(n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in modules())
    body = tree(".".join(parts[:count])).body
    for part in parts[count:]:
        names = dict(defined(body))
        if part not in names:
            return False
        body = names[part]
    return True


def test_names_of_modules_exist() -> None:
    """A name as `podscaler.core.decide` in a docstring, a comment or a page is that of something that exists."""
    found = {(path, name) for path, text in texts() for name in FULL_NAME.findall(text)}
    assert (len(found) > 100, sorted(each for each in found if not is_there(each[1]))) == (True, [])


def test_paths_of_modules_exist() -> None:
    """A path as `core/decide` or `core/decide.decide` in a docstring or a page leads to something that exists."""
    found = {(path, name) for path, text in texts() for name in MODULE_PATH.findall(text)}
    lost = sorted(each for each in found if not is_there(f"podscaler.{each[1].replace('/', '.')}"))
    assert (len(found) > 80, lost) == (True, [])


@cache
def imported(package: str) -> frozenset[str]:
    """The full names that a module imports, or all modules of a package."""
    inside = [name for name in modules() if name == package or name.startswith(f"{package}.")]
    return frozenset(name for module in inside for name in imports(module))


def imports(module: str) -> Iterator[str]:
    """The full names that a module imports, wherever in it."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_callers_import_what_they_call() -> None:
    """The modules in `Called by` of a module's docstring exist and import that module."""
    faults = []
    for module in [name for name, path in modules().items() if "Called by `" in path.read_text(encoding="utf-8")]:
        sentence = CALLERS.search(" ".join((ast.get_docstring(tree(module)) or "").split()))
        for caller in re.findall(r"`([\w.]+)`", sentence[1]) if sentence else []:
            callers = [name for name in modules() if f".{name}".endswith(f".{caller}")]
            names = {name for each in callers for name in imported(each)}
            if not any(name == module or name.startswith(f"{module}.") for name in names):
                faults.append((module, caller))
    assert faults == []
