"""Writes docs/images/dashboard.png and dashboard-autoscaler.png: the dashboard of a `podscaler up` with three examples.

Needs Chromium (`apt-get install chromium`) and kubectl (`make assets`). Takes a minute and a half: the load of one
example is raised meanwhile, so that there is something to see.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asset_modules
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
EXAMPLES = ("memory.yaml", "behavior.yaml", "queue-to-zero.yaml")
FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--metric-resolution=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=15s",
)
LINK = "this link logs in once: "
LOADS = ("2Gi", "3Gi", "1536Mi", "768Mi")
STEP_S = 15


def main() -> int:
    """Write the pictures. Exit status 2 without Chromium or kubectl."""
    chromium, kubectl = shutil.which("chromium"), asset_modules.find_program("kubectl")
    if chromium is None or kubectl is None:
        print("needs chromium (apt-get install chromium) and kubectl (make assets)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "podscaler", "up", "--data-dir", folder, *FLAGS]
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert up.stdout is not None
            link = next(line for line in up.stdout if line.startswith(LINK)).removeprefix(LINK).strip()
            _make_load([str(kubectl), f"--kubeconfig={folder}/kubeconfig"])
            _draw(chromium, link)
        finally:
            up.terminate()
            up.wait()
    return 0


def _make_load(kubectl: list[str]) -> None:
    """Apply the examples, and change the memory that the pods of one share."""
    files = [f"--filename={ROOT / 'examples' / name}" for name in EXAMPLES]
    subprocess.run([*kubectl, "apply", *files], check=True, stdout=subprocess.DEVNULL)
    for load in LOADS:
        time.sleep(STEP_S)
        change = ["annotate", "deployment", "memory", "--overwrite", f"podscaler.dev/simulated-total-memory={load}"]
        subprocess.run([*kubectl, *change], check=True, stdout=subprocess.DEVNULL)
    time.sleep(STEP_S)


def _draw(chromium: str, link: str) -> None:
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 1280, "height": 420}, color_scheme="light")
        page.goto(link)
        page.locator("tbody tr").first.wait_for()
        page.screenshot(path=IMAGES / "dashboard.png")
        page.set_viewport_size({"width": 1280, "height": 960})
        _open_memory(page)
        page.screenshot(path=IMAGES / "dashboard-autoscaler.png")
        browser.close()


def _open_memory(page: Page) -> None:
    """Open the autoscaler whose load changed, and explain one of its decisions."""
    page.get_by_role("link", name="default/memory").click()
    page.locator("#range").select_option("15")
    page.locator("[role=option]").nth(1).wait_for()
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    for _ in range(12):
        page.get_by_role("button", name="Later").click()
    page.locator("[role=option]").nth(1).click()
    page.locator(".steps").first.wait_for()
    page.wait_for_timeout(300)


if __name__ == "__main__":
    sys.exit(main())
