"""Chromium for tests."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def path():
    """The path of Chromium. Skips the test if it is not installed."""
    executable = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip("Chromium is not installed. The variable CHROMIUM sets its path.")
    return executable


def started():
    """Yields a browser, for use in a fixture."""
    executable = path()
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (extra 'browser')"
    )
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
