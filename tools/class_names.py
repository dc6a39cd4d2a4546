"""Checks that no public class name stands twice in a source tree, but for those that CONTRIBUTING.md lists.

Called by `make check` as `python tools/class_names.py src CONTRIBUTING.md`. The list is the table under the heading
"Class names that stand twice"; its first column has the names. A listed name that stands once is a fault, too.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HEADING = "## Class names that stand twice\n"
ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def allowed(page: str) -> set[str]:
    """The names in the table of CONTRIBUTING.md, which may stand twice."""
    section = page.partition(HEADING)[2].partition("\n## ")[0]
    return set(ROW.findall(section))


def classes(root: Path) -> Iterator[tuple[str, Path]]:
    """The public classes on the top level of all modules below `root`, each with its file."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path


def findings(root: Path, page: str) -> list[str]:
    """The names that stand twice and are not listed, or are listed and stand once, a line each with their places."""
    places: dict[str, list[str]] = {}
    for name, path in classes(root):
        places.setdefault(name, []).append(str(path.relative_to(root)))
    twice = {name for name, where in places.items() if len(where) > 1}
    listed = allowed(page)
    faults = [f"class {name} stands in {', '.join(places[name])}" for name in sorted(twice - listed)]
    return faults + [f"class {name} is listed in CONTRIBUTING.md, but stands once" for name in sorted(listed - twice)]


def main() -> int:
    """Exit status 1 if there are findings about the folder and the page that the command line names."""
    faults = findings(Path(sys.argv[1]), Path(sys.argv[2]).read_text(encoding="utf-8"))
    print("\n".join(faults) if faults else "class names: kept")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
