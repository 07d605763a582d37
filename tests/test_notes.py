"""Each page of docs/notes goes through its lecture note from beginning to end.

The lists in tests/notes say what a note has, in its order: sections with the number of their slides, parts (theorems,
algorithms, figures, definitions) and questions. On the page a section is a `## ` heading, a part a paragraph that begins
with its name in bold, a question a quotation that begins with **Exercise.** Each must be answered: by code that runs, by a
figure that is drawn, by a correction or by a link to where the library does it.
"""

import re
import tomllib
from itertools import pairwise

import pytest

from docs.pages import DOCS, ROOT

NOTES = sorted((ROOT / "tests" / "notes").glob("*.toml"))
ANSWERS = {
    "code": re.compile(r"^```python$", re.MULTILINE),
    "figure": re.compile(r"^!\[", re.MULTILINE),
    "correction": re.compile(r"^\*\*Correction\.\*\*", re.MULTILINE),
    "link": re.compile(r"\]\(\.\.?/[^)]+\)|\]\(#[^)]+\)"),
}


def read_note(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def read_page(name):
    """(what precedes the first section, [(title, text) of each section])"""
    head, *found = re.split(r"^## (.+)\n", (DOCS / "notes" / f"{name}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return head, list(zip(found[::2], found[1::2], strict=True))


def answered(text):
    return any(pattern.search(text) for pattern in ANSWERS.values())


def missing(section, text):
    """What a section of the list has and the text on the page has not."""
    slides = section.get("slides", 1)
    if slides > 1 and not text.lstrip().startswith(f"*{slides} slides.*"):
        yield f"*{slides} slides.*"
    if not answered(text):
        yield "any code, figure, correction or link"
    places = []
    for part in section.get("parts", ()):
        found = re.compile(rf"^\*\*{re.escape(part)}\.\*\*", re.MULTILINE).search(text, places[-1] if places else 0)
        if found:
            places.append(found.end())
        else:
            yield f"a part **{part}.** after the parts before it"
    questions = [
        (found.end(), " ".join(found.group().replace("\n>", " ").split()))
        for found in re.finditer(r"^> \*\*Exercise\.\*\*.*(?:\n>.*)*", text, flags=re.MULTILINE)
    ]
    last = -1
    for question in section.get("questions", ()):
        number = next((i for i, (_, asked) in enumerate(questions) if i > last and question in asked), None)
        if number is None:
            yield f"an exercise that asks {question!r} after the exercises before it"
        else:
            last = number
    stops = sorted([*places, *(end for end, _ in questions), len(text)])
    for start, stop in pairwise(stops):
        if not answered(text[start:stop]):
            yield f"an answer to {text[:start].splitlines()[-1]!r}"


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.stem)
def test_a_page_goes_through_its_note(path):
    note, (head, sections) = read_note(path), read_page(path.stem)
    for words in note["printed"]:
        assert words in head, f"{path.stem}.md does not say which note it is about: {words}"
    assert [title for title, _ in sections[: len(note["sections"])]] == [section["title"] for section in note["sections"]]
    lacking = [
        f"{section['title']}: {what}"
        for section, (_, text) in zip(note["sections"], sections, strict=False)
        for what in missing(section, text)
    ]
    assert not lacking


def test_every_page_has_its_list():
    assert {page.stem for page in (DOCS / "notes").glob("*.md")} - {"index"} <= {path.stem for path in NOTES}


def test_the_check_sees_what_is_missing():
    section = {"slides": 2, "parts": ["Theorem 1", "Lemma 2"], "questions": ["Why?"]}
    whole = "*2 slides.*\n\n**Theorem 1.** See [it](../theory/bound.md).\n\n**Lemma 2.** As follows:\n\n```python\n```\n\n"
    whole += "> **Exercise.** And\n> Why?\n\n**Correction.** No.\n"
    assert list(missing(section, whole)) == []
    for lost in (
        "*2 slides.*",
        "**Theorem 1.**",
        "[it](../theory/bound.md)",
        "**Lemma 2.**",
        "```python",
        "Why?",
        "**Correction.**",
    ):
        assert list(missing(section, whole.replace(lost, ""))), f"nobody notices that {lost} is gone"
    assert list(missing(section, whole.replace("Theorem 1", "x").replace("Lemma 2", "Theorem 1").replace("x.", "Lemma 2.")))
