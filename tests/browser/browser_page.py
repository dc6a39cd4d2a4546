"""A page of a real browser, with what its console said."""

from playwright.sync_api import Page

from patience import WITHIN_S

PATIENCE_MS = WITHIN_S * 1000


class WatchedPage:
    """A page, and what its console said.

    Attributes:
        complaints: errors and warnings of the console, and exceptions.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)
