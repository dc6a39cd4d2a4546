"""The page's files: found by their paths alone, with their types, and nothing outside of their folders."""

from pathlib import Path

import pytest

from dashboard_world import DashboardWorld
from podscaler.dashboard.static_files import StaticFiles


@pytest.fixture
def files(tmp_path: Path) -> StaticFiles:
    """A page, its script in a folder, and plots in another folder."""
    (tmp_path / "secret.txt").write_text("x")
    for name in ("page/index.html", "page/parts/app.js", "plots/plot.css", "page/notes.exe"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return StaticFiles({"": tmp_path / "page", "charts/": tmp_path / "plots", "none/": tmp_path / "none"})


@pytest.mark.parametrize(
    ("path", "body", "content_type"),
    [
        ("/", b"page/index.html", "text/html; charset=utf-8"),
        ("/static/parts/app.js", b"page/parts/app.js", "text/javascript; charset=utf-8"),
        ("/parts/app.js", b"page/parts/app.js", "text/javascript; charset=utf-8"),
        ("/static/charts/plot.css", b"plots/plot.css", "text/css; charset=utf-8"),
    ],
)
def test_found(files: StaticFiles, path: str, body: bytes, content_type: str) -> None:
    """A file, with the type of its ending."""
    found = files.find(path)
    assert found is not None
    assert (found.body, found.content_type) == (body, content_type)


@pytest.mark.parametrize(
    "path", ["/../secret.txt", "/static/../../secret.txt", "/notes.exe", "/parts", "/parts/", "/none/x", "//etc/passwd"]
)
def test_absent(files: StaticFiles, path: str) -> None:
    """Nothing else exists: no other ending, no folder, nothing above."""
    assert files.find(path) is None


async def test_the_page_needs_no_session() -> None:
    """A path without a file is 404, not 401: files have no data, and who is not logged in gets the page."""
    async with DashboardWorld.open(is_logged_in=False) as world:
        assert (await world.viewer.get("/static/none.js"))[0] == 404
