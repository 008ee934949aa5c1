"""A headless Chromium for tests of pages; where none is installed they are skipped."""

import contextlib
import shutil
import tempfile
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page, sync_playwright

ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable() -> str | None:
    found = (shutil.which(n) for n in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in found if path), None)


needs_chromium = pytest.mark.skipif(executable() is None, reason="Chromium is not installed")


@dataclass
class Seen:
    """What a page did beside being shown."""

    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@contextlib.contextmanager
def opened(**settings):
    """A page of a new browser with its own profile, and what it was seen to do.

    One a test: while Playwright's loop runs in this thread, no test may start one of its own.
    """
    with tempfile.TemporaryDirectory(prefix="chromium-") as profile, sync_playwright() as play:
        context = play.chromium.launch_persistent_context(
            profile, executable_path=executable(), args=list(ARGS), headless=True, **settings
        )
        page: Page = context.pages[0]
        page.set_default_timeout(30_000)
        seen = Seen()
        page.on("request", lambda r: seen.requests.append(r.url))
        page.on("console", lambda m: seen.messages.append(m.text))
        page.on("pageerror", lambda e: seen.errors.append(str(e)))
        page.on("dialog", lambda d: (seen.errors.append(f"dialog {d.message}"), d.dismiss()))
        try:
            yield page, seen
        finally:
            context.close()


def ready(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
