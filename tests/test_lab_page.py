"""The page of the lab in a real browser: click, drag, step, compare, load, link; and how long a click takes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from browsing import NAMELESS_FIELDS, PALE_TEXTS, expect, in_a_browser, launch
from test_lab import lab

import rosenblatt
from rosenblatt.lab import Job, record

FOLDER = Path(rosenblatt.__file__).parent
FILES = FOLDER / "lab" / "page"
HTML = (FILES / "index.html").read_text(encoding="utf-8")
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(FILES.glob("*.js"))}
PATIENCE = 60_000  # milliseconds for what a page shows
REFUSED = "Failed to load resource: the server responded with a status of 4"  # which the page shows in words
XOR = "/#p=0,0,-1;0,1,1;1,0,1;1,1,-1"


# The files alone


def test_the_page_has_neither_script_nor_style_in_its_text():
    assert not re.search(r"<script(?![^>]*\bsrc=)", HTML)
    assert "<style" not in HTML
    assert not re.search(r"\s(style|on[a-z]+)\s*=", HTML)


def test_data_is_never_read_as_html_and_no_other_server_is_named():
    for text in SCRIPTS.values():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
    for text in [HTML, *SCRIPTS.values(), (FILES / "lab.css").read_text(encoding="utf-8")]:
        assert "//" not in re.sub(r"(^|\s)//.*", "", text)


def test_the_files_that_the_page_names_are_there():
    names = {*re.findall(r'(?:src|href)="page/(.*?)"', HTML)}
    own = {path.name for path in FILES.iterdir()} - {"index.html"}
    assert own <= names
    assert all((FOLDER / "theory" / "page" / name).is_file() for name in names - own)


def test_the_elements_that_scripts_use_are_there():
    ids = {*re.findall(r'\bid="(.*?)"', HTML)}
    assert {name for text in SCRIPTS.values() for name in re.findall(r'byId\("(.*?)"\)', text)} <= ids
    parts = {*re.findall(r'data-part="(.*?)"', HTML)}
    assert {name for text in SCRIPTS.values() for name in re.findall(r'part\("(.*?)"\)', text)} <= parts


# In a browser


@pytest.fixture(scope="module")
def server():
    with lab("--port", "0") as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with launch() as browser:
        yield browser


@pytest.fixture
def opened(browser, server):
    """Open the page; in the end none had an error, broke its policy or asked another server."""
    faults, contexts = [], []

    def open_page(address="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 720}} | options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: None if REFUSED in message.text else faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(error.stack))
        page.on("request", lambda request: None if request.url.startswith(server.url) else faults.append(request.url))
        page.goto(server.url + address)
        expect(page.locator("#summary")).not_to_be_empty()
        return page

    expect.set_options(timeout=PATIENCE)
    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def place(page, x, y, name="a"):
    """Where a point of the plane is on the screen."""
    return page.evaluate(
        """([x, y, name]) => {
          const { plane } = views.find((learner) => learner.name === name);
          const box = plane.canvas.getBoundingClientRect();
          const [left, top] = plane.place([x, y]);
          return [box.left + left, box.top + top];
        }""",
        [x, y, name],
    )


def click(page, x, y, name="a", **options):
    page.mouse.click(*place(page, x, y, name), **options)


def settled(page, points):
    """Wait until both runs are those of so many points."""
    expect(page.locator("#summary")).to_have_text(f"{points} point{'s' * (points != 1)}")
    page.wait_for_function(
        "count => views.every(({ run, asking }) => !asking && run && run.points.length === count)", arg=points
    )


def line(page, name="a"):
    return page.evaluate("name => views.find((learner) => learner.name === name).run.lines.at(-1)", name)


def learned(page, job):
    """The line that the library learns from the points of the page."""
    table = np.array(page.evaluate("points"))
    return record(table[:, :2], table[:, 2], job).lines[-1]


@in_a_browser
def test_a_click_adds_a_point_and_both_lines_are_those_of_the_library(opened):
    page = opened()
    expect(page.locator("#a-problem")).to_have_text("Click in the plane to add points.")
    click(page, 2, 1)
    expect(page.locator("#a-problem")).to_contain_text("Add a point of the other class")
    page.keyboard.down("Shift")
    click(page, -2, 1)
    page.keyboard.up("Shift")
    settled(page, 2)
    click(page, -1, -2, button="right")
    settled(page, 3)
    assert page.evaluate("points.map((point) => point[2])") == [1, -1, -1]
    before = line(page)
    assert np.allclose(before, learned(page, Job()), rtol=1e-6)
    click(page, 1, -3, name="b")
    settled(page, 4)
    assert line(page) != before
    assert np.allclose(line(page), learned(page, Job()), rtol=1e-6)
    assert np.allclose(line(page, "b"), learned(page, Job("PassiveAggressiveClassifier")), rtol=1e-6)


@in_a_browser
def test_points_are_moved_removed_and_brought_back(opened):
    page = opened()
    page.keyboard.press("1")
    click(page, -2, 1)
    page.keyboard.press("2")
    click(page, 2, 1)
    settled(page, 2)
    assert page.evaluate("points.map((point) => point[2])") == [-1, 1]
    page.mouse.move(*place(page, 2, 1))
    page.mouse.down()
    page.mouse.move(*place(page, 3, -2), steps=4)
    page.mouse.up()
    settled(page, 2)
    assert np.allclose(page.evaluate("points[1]"), [3, -2, 1], atol=0.05)
    page.keyboard.press("Control+z")
    assert np.allclose(page.evaluate("points[1]"), [2, 1, 1], atol=0.05)
    page.keyboard.down("Alt")
    click(page, 2, 1)
    page.keyboard.up("Alt")
    assert len(page.evaluate("points")) == 1
    page.click("#undo")
    settled(page, 2)
    click(page, -2, 1)  # chooses it
    page.keyboard.press("Delete")
    assert page.evaluate("points.map((point) => point[2])") == [1]
    page.click("#clear")
    expect(page.locator("#summary")).to_have_text("0 points")


@in_a_browser
def test_points_can_be_set_with_keys_alone(opened):
    page = opened()
    page.locator("#a-plane").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+Enter")
    settled(page, 2)
    found = page.evaluate("points")
    assert found[0][2] == 1
    assert found[1][2] == -1
    assert found[1][0] < found[0][0]
    assert found[1][1] > found[0][1]
    page.keyboard.press("Delete")
    assert len(page.evaluate("points")) == 1


@in_a_browser
def test_one_slider_steps_through_both_runs(opened):
    page = opened()
    page.select_option("#preset", label="Touching clouds")
    settled(page, 40)
    lasts = page.evaluate("views.map((learner) => learner.last)")
    expect(page.locator("#position")).to_have_text(f"{max(lasts)} of {max(lasts)}")
    page.keyboard.press("Home")
    expect(page.locator("#a-step")).to_contain_text("Before the first update")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    for name in "ab":
        expect(page.locator(f"#{name}-step")).to_contain_text("Update 2: point")
    page.locator("#slider").fill("1")
    for name in "ab":
        expect(page.locator(f"#{name}-step")).to_contain_text("Update 1: point")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_text("Pause")


@in_a_browser
def test_learners_and_parameters_are_chosen_for_each_run(opened):
    page = opened(XOR)
    settled(page, 4)
    expect(page.locator("#a-facts")).to_contain_text("a cycle of 4 updates")
    page.select_option("#b-learner", "KernelPerceptron")
    expect(page.locator("#b-step")).to_contain_text("0 of 4 points on the wrong side")
    page.click("#b-more summary")
    page.select_option("#b-fields select", "linear")
    expect(page.locator("#b-step")).not_to_contain_text("0 of 4 points")
    page.fill("#a-epochs", "3")
    page.keyboard.press("Tab")
    expect(page.locator("#a-facts")).to_contain_text("12 updates, 12 mistakes in 3 epochs")
    page.fill("#a-epochs", "99999")
    page.keyboard.press("Tab")
    expect(page.locator("#a-problem")).to_contain_text("epochs must be at most 10,000; got 99,999")


@in_a_browser
def test_an_example_of_the_notes_shows_its_bound_and_walls(opened):
    page = opened()
    page.select_option("#preset", label="Six points (CMU 10-607)")
    settled(page, 6)
    expect(page.locator("#a-facts")).to_contain_text("3 updates, 3 mistakes in 2 epochs; then nothing changes")
    expect(page.locator("#a-facts")).to_contain_text("at most 5 updates")
    page.click("#a-proof summary")
    expect(page.locator("#a-walls")).to_be_visible()
    page.keyboard.press("Home")
    expect(page.locator("#b-proof")).not_to_be_visible()


@in_a_browser
def test_a_link_shows_the_same(opened):
    page = opened()
    page.select_option("#preset", label="Two clouds")
    page.select_option("#b-learner", "AROW")
    settled(page, 40)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("AROW.*k=1$"))
    other = opened(page.url[page.url.index("/#") :])
    settled(other, 40)
    expect(other.locator("#b-learner")).to_have_value("AROW")
    expect(other.locator("#position")).to_have_text(re.compile("^1 of "))
    assert other.evaluate("[points, view.x]") == page.evaluate("[points, view.x.map((x) => Number(x.toPrecision(6)))]")
    assert line(other, "b") == line(page, "b")


@in_a_browser
@pytest.mark.parametrize("address", ["#p=1,2;x", "#p=1,2,3", "#p=0,0,1;1,1,-1&a={"])
def test_an_address_that_cannot_be_read_is_said(opened, address):
    page = opened("/" + address)
    expect(page.locator("#problem")).to_contain_text("The address has")


@in_a_browser
@pytest.mark.parametrize("step", ["half", "0.5"])
def test_a_step_of_the_address_is_a_whole_number(opened, step):
    page = opened(f"#p=1,1,1;-1,-1,-1&k={step}")
    expect(page.locator("#position")).to_have_text(re.compile(r"^([1-9]\d*) of \1$"))


@in_a_browser
def test_a_view_of_numbers_too_large_for_its_ticks_does_not_hang(opened):
    page = opened("#p=1,1,1;-1,-1,-1&v=10000000000000000,10000000000000004,-1,1")
    expect(page.locator("#a-problem")).to_contain_text("box must be four numbers")


@in_a_browser
def test_points_come_from_a_file_and_go_to_one(opened):
    page = opened()
    text = b"height,width,kind\n1,2,cat\n3,4,dog\n5,4,dog\n"
    page.set_input_files("#file", {"name": "pets.csv", "mimeType": "text/csv", "buffer": text})
    settled(page, 3)
    expect(page.locator("#positive-name")).to_have_text("dog")
    with page.expect_download() as saved:
        page.click("#download")
    assert Path(saved.value.path()).read_bytes().replace(b"label", b"kind") == text
    bad = {"name": "x.csv", "mimeType": "text/csv", "buffer": b"a,b,label\n1,2,0\n3,q,1\n"}
    page.set_input_files("#file", bad)
    expect(page.locator("#problem")).to_contain_text("the table must have two columns of numbers")
    page.set_input_files("#file", {**bad, "buffer": b"a,b,label\n1,2,x\n3,,y\n"})
    expect(page.locator("#problem")).to_have_text("line 3: the value is missing")
    assert len(page.evaluate("points")) == 3


@in_a_browser
@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1280, "dark"), (1280, "light"), (1920, "light")])
def test_it_fits_the_screen_in_both_themes(opened, width, scheme):
    page = opened(viewport={"width": width, "height": max(720, width * 9 // 16)}, color_scheme=scheme)
    page.select_option("#preset", label="Touching clouds")
    settled(page, 40)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width >= 1280:
        bottom = page.evaluate("document.getElementById('b-facts').getBoundingClientRect().bottom")
        assert bottom <= page.evaluate("document.querySelector('footer').getBoundingClientRect().top")
    assert page.evaluate(PALE_TEXTS) == []
    assert page.evaluate(NAMELESS_FIELDS) == []


# Milliseconds from the press of the button to the frame that shows the new lines of both runs.
CLICK = """([x, y]) => new Promise((resolve) => {
  const { plane } = views[0];
  const box = plane.canvas.getBoundingClientRect();
  const [left, top] = plane.place([x, y]);
  const press = { clientX: box.left + left, clientY: box.top + top, pointerId: 1, button: 0, bubbles: true };
  const begun = performance.now();
  plane.canvas.setPointerCapture = () => {};
  plane.canvas.dispatchEvent(new PointerEvent("pointerdown", press));
  plane.canvas.dispatchEvent(new PointerEvent("pointerup", press));
  const wanted = points.length;
  const look = () => {
    const shown = views.every(({ run, asking }) => !asking && run?.points.length === wanted) && player.redraw === 0;
    if (shown) resolve(performance.now() - begun);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


def click_times(page, clicks):
    rng = np.random.default_rng(1)
    page.select_option("#preset", label="Eight points (IIIT-H SMAI)")
    settled(page, 8)
    times = []
    for _ in range(clicks):
        x, y = rng.uniform([-2, -3], [2, 3])
        page.evaluate("its => chooseSign(its)", 1 if x + y > 0 else -1)
        times.append(page.evaluate(CLICK, [float(x), float(y)]))
    return times


@in_a_browser
@pytest.mark.reproduce  # a time, which a busy machine would not keep
def test_a_click_shows_the_new_lines_in_a_tenth_of_a_second(opened):
    page = opened()
    expect(page.locator("#compiling")).to_be_empty()
    times = click_times(page, 25)[5:]
    assert np.median(times) < 100
