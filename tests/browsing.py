"""Chromium for the tests of pages: where it is, how it is started, and what every page is held to."""

import os
import shutil
from contextlib import contextmanager

import pytest

chromium = shutil.which("chromium") or shutil.which("chromium-browser")
try:
    from playwright.sync_api import expect as expect  # for the tests
    from playwright.sync_api import sync_playwright

    missing = None if chromium else "needs Chromium: apt-get install chromium"
except ImportError:
    expect, missing = None, "needs playwright: pip install playwright"
in_a_browser = pytest.mark.skipif(missing is not None, reason=missing or "")


@contextmanager
def launch():
    """Start Chromium, and close it in the end."""
    with sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        yield browser
        browser.close()


# The texts that are seen and whose contrast is less than the 4.5 of WCAG 2.1 (AA).
PALE_TEXTS = r"""() => {
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const linear = (part) => (part <= 10.03 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const background = (e) => {
    const color = parts(getComputedStyle(e).backgroundColor);
    return color[3] === 0 ? background(e.parentElement) : color;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) => (node.data.trim() ? 1 : 2));
  const pale = [];
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!e.checkVisibility() || e.closest(":disabled, .visually-hidden")) continue;
    const style = getComputedStyle(e);
    const [low, high] = [parts(e instanceof SVGElement ? style.fill : style.color), background(e)]
      .map(luminance).sort((one, other) => one - other);
    if ((high + 0.05) / (low + 0.05) < 4.5) pale.push(texts.currentNode.data);
  }
  return pale;
}"""
NAMELESS_FIELDS = """[...document.querySelectorAll("input, select, textarea")]
  .filter((e) => !e.labels.length && !e.getAttribute("aria-label")).map((e) => e.id)"""
