"""How long a browser takes to draw the dashboard's list of 1,000 autoscalers, and to show a change.

    .venv/bin/python -m benchmarks dashboard_page

Chromium loads the page's files and a stated list from a server in this process; the times are the browser's own.
"""

import asyncio
import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from playwright.sync_api import sync_playwright

from podscaler.observe.views import AutoscalerList
from podscaler.testing import views

ROWS = 1000
CHANGED = 50
ROOT = Path(__file__).parent.parent / "src" / "podscaler"
FOLDERS = {"/static/charts/": ROOT / "simulation" / "report" / "static", "/static/": ROOT / "dashboard" / "static"}

UPDATED = """rows => new Promise(done => {
  const begun = performance.now();
  window.streamed(rows);
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
})"""


def listing() -> dict[str, Any]:
    """The list as the server sends it."""
    rows = tuple([views.row(f"team-{index % 40}", f"web-{index:04}", severity=index % 4) for index in range(ROWS)])
    text = msgspec.json.encode(AutoscalerList(views.START_MS, "benchmark", views.START_MS, "since the start", rows))
    found: dict[str, Any] = json.loads(text)
    return found


def serve(found: dict[str, Any]) -> int:
    """The port of a server of the page and the list; it ends with the process."""
    app = web.Application()

    async def index(_: web.Request) -> web.FileResponse:
        return web.FileResponse(FOLDERS["/static/"] / "index.html")

    async def autoscalers(_: web.Request) -> web.Response:
        return web.json_response(found)

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    app.router.add_get("/", index)
    app.router.add_get("/api/autoscalers", autoscalers)
    app.router.add_get("/api/stream", stream)
    for path, folder in FOLDERS.items():
        app.router.add_static(path, folder)
    ready, ports = threading.Event(), list[int]()

    async def run() -> None:
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ports.append(runner.addresses[0][1])
        ready.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    ready.wait()
    return ports[0]


def main() -> None:
    """Print the table."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium: apt-get install chromium")
    found = listing()
    port = serve(found)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        page = playwright.chromium.launch(executable_path=chromium, args=arguments).new_page()
        drawn, updated = [], []
        for _ in range(5):
            page.goto(f"http://127.0.0.1:{port}/")
            page.locator("tbody tr").nth(ROWS - 1).wait_for(state="attached")
            drawn.append(page.evaluate("performance.now()"))
            changed = [each | {"replicas": 9, "severity": 3} for each in found["rows"][:CHANGED]]
            updated.append(page.evaluate(UPDATED, changed))
            page.goto("about:blank")
    print("| what | fastest | slowest | goal |")
    print("|---|---|---|---|")
    print(f"| list of {ROWS:,} autoscalers, from navigation | {min(drawn):.0f} ms | {max(drawn):.0f} ms | 1,000 ms |")
    print(f"| {CHANGED} rows change and move | {min(updated):.0f} ms | {max(updated):.0f} ms | 200 ms |")


if __name__ == "__main__":
    main()
