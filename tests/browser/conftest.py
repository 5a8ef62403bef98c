"""Fixtures of the browser tests: the browser from chromium.py, the site from the project's own parts."""

from tests.browser.chromium import browser, page

__all__ = ["browser", "page"]
