"""All benchmarks, one table after the other: `make bench`, or `python -m benchmarks NAME...` for some of them.

Numbers after the name of one say how much it is to count: `python -m benchmarks pods 5000`.
"""

import sys
import time
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The modules of this folder that have a `main`."""
    modules = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__main__")
    return [name for name in modules if hasattr(import_module(f"benchmarks.{name}"), "main")]


def main(chosen: list[str]) -> int:
    """Run the chosen benchmarks (none: all). Exit status 2 for a name that is none."""
    known = names()
    sizes = tuple(int(text) for text in chosen if text.isdecimal())
    chosen = [name for name in chosen if not name.isdecimal()]
    if unknown := [name for name in chosen if name not in known]:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in chosen or known:
        module = import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
        begun = time.perf_counter()
        module.main(*([sizes] if sizes else []))
        print(f"\n   ({time.perf_counter() - begun:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
