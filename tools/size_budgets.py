"""Size budgets: no function over 60 lines, no file over 500, and 90 % of the functions of src within 25.

Called by `make check`; the numbers come from codebases that are a pleasure to read (ARCHITECTURE.md).
"""

import ast
import sys
from pathlib import Path

FUNCTION_MAX_LINES = 60
FILE_MAX_LINES = 500
USUAL_LINES = 25
USUAL_SHARE = 0.9

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def body_lines(function: FunctionNode) -> int:
    """The lines of a function's body, its docstring left out."""
    body = function.body
    if (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def findings(path: Path) -> tuple[list[str], list[int]]:
    """What is over its budget in one file, and the body sizes of its functions."""
    text = path.read_text(encoding="utf-8")
    too_large = []
    if (lines := text.count("\n")) > FILE_MAX_LINES:
        too_large.append(f"{path}: {lines} lines (budget {FILE_MAX_LINES}): probably two concepts")
    sizes = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FunctionNode):
            sizes.append(size := body_lines(node))
            if size > FUNCTION_MAX_LINES:
                too_large.append(f"{path}:{node.lineno}: {node.name} has {size} lines (budget {FUNCTION_MAX_LINES})")
    return too_large, sizes


def main() -> int:
    """Exit status 1 if anything in the folders named on the command line is over its budget."""
    wrong: list[str] = []
    for folder in sys.argv[1:]:
        sizes: list[int] = []
        for path in sorted(Path(folder).rglob("*.py")):
            file_wrong, file_sizes = findings(path)
            wrong += file_wrong
            sizes += file_sizes
        usual = sum(size <= USUAL_LINES for size in sizes)
        if sizes and usual < USUAL_SHARE * len(sizes):
            wrong.append(f"{folder}: only {usual} of {len(sizes)} functions are within {USUAL_LINES} lines")
    print("\n".join(wrong) if wrong else "size budgets: kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
