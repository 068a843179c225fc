"""Chromium for tests, where it is installed."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def path():
    """Where Chromium is. Skips the test where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("Chromium is not installed; CHROMIUM names one")
    return found


def started():
    """What a fixture yields from: a browser, for all its tests."""
    executable = path()
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: the extra 'browser' has it"
    )
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
