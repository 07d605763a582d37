"""The documentation site builds without a warning, its links lead somewhere, and it leaves nothing out."""

import os
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import rosenblatt
from docs.conf import SEARCHED
from docs.pages import DOCS, PAGES, ROOT
from docs.public import public_modules, public_names
from rosenblatt.cli.app import COMMANDS


class Page(HTMLParser):
    """The anchors of a page, its links, what it loads from elsewhere, and its text."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads, self.text = {""}, [], [], ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("script", "img", "link"):
            self.loads.append(found.get("src") or found.get("href") or "")

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages of the site by their path, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-j",
        "2",
        "-d",
        folder / "read",
        DOCS,
        folder / "html",
    ]
    built = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, timeout=500
    )
    assert built.returncode == 0, built.stderr
    html = folder / "html"
    assert "perceptron" in (html / "searchindex.js").read_text(encoding="utf-8")
    return {path.relative_to(html).as_posix(): Page(path) for path in html.rglob("*.html") if "_static" not in path.parts}


def target(page, link):
    """The page and the anchor that a link of a page leads to; None where that is outside the site."""
    found = urlsplit(link)
    if found.scheme or found.netloc:
        return None
    path = os.path.normpath(os.path.join(os.path.dirname(page), unquote(found.path))) if found.path else page
    return Path(path).as_posix(), unquote(found.fragment)


def test_home_leads_to_every_page(site):
    reached, ahead = set(), {"index.html"}
    while ahead:
        page = ahead.pop()
        reached.add(page)
        found = {target(page, link) for link in site[page].links} - {None}
        ahead |= {name for name, _ in found if name in site} - reached
    pages = {page.relative_to(DOCS).with_suffix(".html").as_posix() for page in PAGES if DOCS in page.parents}
    assert pages <= reached


def test_every_link_leads_to_a_page_and_an_anchor(site):
    broken = defaultdict(set)
    for name, page in site.items():
        for found in {target(name, link) for link in page.links} - {None}:
            if found[0] in site and found[1] not in site[found[0]].anchors:
                broken[name].add("#".join(found))
            if found[0].endswith(".html") and found[0] not in site:
                broken[name].add(found[0])
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site):
    assert not {load for page in site.values() for load in page.loads if urlsplit(load).netloc}


def test_every_public_name_has_an_entry(site):
    anchors = set().union(*(page.anchors for name, page in site.items() if name.startswith("reference/api/")))
    assert not {f"{module}.{name}" for module, name, _ in public_names()} - anchors
    assert not {module.__name__ for module in public_modules()} - {f"{name.removeprefix('module-')}" for name in anchors}
    assert {f"module-rosenblatt.{name}" for name in rosenblatt._MODULES - {"estimators"}} <= anchors


def test_parameters_have_a_dash_before_their_description(site):
    text = site["reference/api/rosenblatt/Perceptron.html"].text
    assert "– Update whenever" in text
    assert " -- " not in text


def test_every_command_has_a_page_with_its_help(site):
    for command in COMMANDS:
        text = site[f"reference/commands/{command}.html"].text
        assert f"Usage: rosenblatt {command}" in text
        assert "--help" in text
        assert "\x1b" not in text


def test_words_of_the_search_lead_to_anchors(site):
    assert not [(page, anchor) for page, anchor, _ in SEARCHED if anchor not in site[f"{page}.html"].anchors]
