"""The pages of docs/: all are listed, links lead to files, and the picture is what its script draws."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def links(page: Path) -> list[Path]:
    """The files that a page leads to."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [(page.parent / link).resolve() for link in LINK.findall(text)]


def test_the_index_lists_every_page() -> None:
    """docs/README.md has a line for each page, docs/decisions/README.md and docs/spec/README.md for each of theirs."""
    for index in (DOCS / "README.md", DOCS / "decisions" / "README.md", DOCS / "spec" / "README.md"):
        pages = {page for page in index.parent.glob("*.md") if page != index}
        assert pages - set(links(index)) == set()


def test_links_lead_to_files() -> None:
    """No page of docs/ leads to a file that is not there."""
    pages = [*DOCS.glob("*.md"), *DOCS.glob("decisions/*.md"), *DOCS.glob("spec/*.md")]
    lost = [(page.name, str(link)) for page in pages for link in links(page) if not link.exists()]
    assert (len(pages) > 20, lost) == (True, [])


def test_the_picture_is_what_its_script_draws() -> None:
    """`python tools/readme_picture.py` would change nothing."""
    script = runpy.run_path(str(ROOT / "tools" / "readme_picture.py"))
    assert (DOCS / "picture.svg").read_text(encoding="utf-8") == script["picture"]()
