"""The page of the server: its files, and in a real browser create, learn, watch, predict, teach, compare, go back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browsing import NAMELESS_FIELDS, PALE_TEXTS, expect, in_a_browser, launch

import rosenblatt
from bench.server import Server
from rosenblatt.modelfile import registry
from rosenblatt.online import OnlinePerceptron

FILES = Path(rosenblatt.__file__).parent / "serve" / "page"
HTML = (FILES / "index.html").read_text(encoding="utf-8")
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(FILES.glob("*.js"))}
STYLE = (FILES / "page.css").read_text(encoding="utf-8")
SECONDS = 60  # for a command
PATIENCE = 60_000  # milliseconds for what a page shows

# The files alone


def test_the_page_has_neither_script_nor_style_in_its_text():
    assert all(
        "src=" in attributes and not body.strip()
        for attributes, body in re.findall(r"<script(.*?)>(.*?)</script>", HTML, re.S)
    )
    assert "<style" not in HTML
    assert not re.search(r"\s(style|on[a-z]+)\s*=", HTML)
    assert "javascript:" not in HTML


def test_the_page_names_no_other_server():
    icon = (FILES / "icon.svg").read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    for text in [HTML, STYLE, icon, *SCRIPTS.values()]:
        assert "//" not in re.sub(r"(^|\s)//.*", "", text), "an address, or one without its scheme"
    assert "@import" not in STYLE
    assert "url(" not in STYLE


def test_the_files_that_the_page_names_are_there():
    names = {*re.findall(r'(?:src|href)="page/(.*?)"', HTML)}
    names |= {name for script in SCRIPTS.values() for name in re.findall(r'from "\./(.*?)"', script)}
    assert names == {path.name for path in FILES.iterdir()} - {"index.html"}


def test_scripts_import_what_other_scripts_export():
    exports = {
        name: {*re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.M)}
        for name, text in SCRIPTS.items()
    }
    for text in SCRIPTS.values():
        for names, origin in re.findall(r'^import \{ (.*?) \} from "\./(.*?)";', text, re.M):
            assert {*names.split(", ")} <= exports[origin]


def test_the_elements_that_scripts_use_are_there():
    ids = re.findall(r'\sid="(.*?)"', HTML)
    assert len(ids) == len({*ids})
    used = {name for text in SCRIPTS.values() for name in re.findall(r'byId\("(.*?)"\)', text)}
    lists = [names for text in SCRIPTS.values() for names in re.findall(r"of \[((?:\"[\w-]+\"(?:, )?)+)\]", text)]
    used |= {name for names in lists for name in re.findall(r'"([\w-]+)"', names)} - {"scores", "why"}
    used |= {
        f"{column}-{part}" for column in ("now", "then") for part in ("heading", "label", "scores", "why", "why-heading")
    }
    assert used <= {*ids}
    for names in re.findall(r'(?:for|aria-labelledby|aria-describedby|list)="(.*?)"', HTML):
        assert {*names.split()} <= {*ids}


def test_the_learners_that_the_page_offers_can_be_served():
    groups = dict(re.findall(r'<optgroup data-labels="(.*?)".*?>(.*?)</optgroup>', HTML, re.S))
    offered = {group: re.findall(r"<option>(\w+)</option>", options) for group, options in groups.items()}
    assert offered["come"].pop(0) == "OnlinePerceptron"
    for group, names in offered.items():
        for name in names:
            learner = registry.learner_class(name)()
            assert hasattr(learner, "partial_fit")
            assert ("unknown_class" in learner.get_params()) == (group == "come")


def test_data_is_never_read_as_html():
    for text in SCRIPTS.values():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage|DOMParser", text
        )


# In a browser


class PageServer(Server):
    """A server, as a browser and as another client see it."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method, path, body=None):
        connection = self.connect()
        body = connection.ask(method, path, body).body
        connection.close()
        return json.loads(body) if body else None

    def create(self, name, **settings):
        self.ask("PUT", f"/models/{name}", {"learner": "OnlinePerceptron", **settings})

    def learn(self, name, *examples):
        self.ask("POST", f"/models/{name}/learn", {"examples": [{"text": text, "y": label} for text, label in examples]})

    def predict(self, name, text, at=None, **options):
        path = f"/models/{name}/predict" + ("" if at is None else f"?at={at}")
        return self.ask("POST", path, {"examples": [{"text": text}], "store": False, **options})["predictions"][0]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with PageServer(tmp_path_factory.mktemp("page") / "folder") as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with launch() as browser:
        yield browser


@pytest.fixture
def opened(browser):
    """Open pages; in the end, none has broken a rule: no error, nothing against the security policy, no other server."""
    faults, contexts = [], []

    def open_page(url, allowed=(), **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective, e.blockedURI))"
        )

        def note(message):
            if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
                faults.append(message.text)

        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(error.stack))
        page.on(
            "request",
            lambda request: faults.append(request.url) if urlsplit(request.url).netloc != urlsplit(url).netloc else None,
        )
        page.on(
            "response",
            lambda answer: faults.append(answer.url) if answer.status >= 400 and answer.status not in allowed else None,
        )
        page.goto(url)
        return page

    expect.set_options(timeout=PATIENCE)
    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def text(page, name):
    return page.locator(f"#{name}")


MAIL = [("win money now", "spam"), ("see you at noon", "ham"), ("money for you now", "spam"), ("lunch at noon", "ham")]


@in_a_browser
def test_create_watch_predict_teach_compare_and_go_back(server, opened):
    page = opened(server.url)
    page.click("#create-open")
    page.fill("#create-name", "mail")
    page.fill("#create-parameters", '{"keep": "average"}')
    page.click("#create-submit")
    expect(text(page, "model-name")).to_have_text("mail")
    expect(text(page, "figure-seen")).to_have_text("0")
    expect(text(page, "connection-text")).to_have_text("Live")

    server.learn("mail", *MAIL)
    expect(text(page, "figure-seen")).to_have_text("4")  # without a reload
    expect(page.locator("#models-list a[aria-current]")).to_contain_text("4 seen")
    expect(text(page, "chart-reading")).to_contain_text("After 4 examples")
    expect(page.locator("#chart path.window")).to_have_count(1)
    expect(page.locator("#wrongs li").first).to_contain_text("predicted")

    page.fill("#try-example", "free money at noon")
    expect(text(page, "try-reading")).to_contain_text("text of 18 characters")
    page.click("#try-predict")
    answer = server.predict("mail", "free money at noon", explain=20)
    expect(text(page, "now-label")).to_have_text(answer["label"])
    expect(page.locator("#now-scores li")).to_have_count(2)
    first = page.locator("#now-why li").first
    strongest = max(answer["contributions"], key=lambda pair: abs(pair[1]))
    expect(first.locator(".number")).to_contain_text(f"{abs(strongest[1]):.3g}"[:4])

    for seq in (3, 4, 5):
        page.locator("#teach-labels button", has_text="ham").click()
        expect(text(page, "teach-done")).to_contain_text(f"Learned “ham” as log entry {seq}")
        expect(text(page, "now-heading")).to_contain_text(f"log entry {seq}")
    page.fill("#teach-new", "maybe")
    page.press("#teach-new", "Enter")
    expect(text(page, "teach-done")).to_contain_text("Learned “maybe” as log entry 6")
    expect(text(page, "figure-classes")).to_have_text("3")
    expect(page.locator("#teach-labels button")).to_have_count(3)
    assert server.ask("GET", "/models/mail")["seen"] == 8

    then = server.predict("mail", "free money at noon", at=2)
    page.fill("#state-seq", "2")
    page.press("#state-seq", "Enter")
    expect(text(page, "then-heading")).to_contain_text("log entry 2")
    expect(text(page, "then-label")).to_have_text(then["label"])
    expect(page.locator("#then-scores li")).to_have_count(2)
    text(page, "weights-heading").scroll_into_view_if_needed()
    expect(text(page, "weights-at")).to_contain_text("log entry 2")

    page.click("#state-back")
    expect(text(page, "confirm-heading")).to_contain_text("Go back to log entry 2")
    page.click("#confirm-yes")
    expect(text(page, "state-done")).to_contain_text("log entry 7")
    expect(text(page, "figure-seen")).to_have_text("4")
    expect(text(page, "figure-classes")).to_have_text("2")
    expect(text(page, "now-heading")).to_contain_text("log entry 7")
    expect(text(page, "now-label")).to_have_text(then["label"])


@in_a_browser
def test_the_keyboard_is_enough(server, opened):
    server.create("keys")
    server.learn("keys", *MAIL)
    server.learn("keys", *MAIL)
    page = opened(f"{server.url}/#/keys")
    expect(text(page, "figure-seen")).to_have_text("8")

    def tab_to(name):
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == name:
                return
        raise AssertionError(f"Tab does not reach {name}")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    tab_to("try-example")
    page.keyboard.type('{"money": 1}')
    page.keyboard.press("Control+Enter")
    expect(text(page, "now-label")).to_have_text("spam")
    tab_to("teach-new")
    page.keyboard.type("ham")
    page.keyboard.press("Enter")
    expect(text(page, "teach-done")).to_contain_text("Learned “ham”")
    expect(text(page, "figure-seq")).to_have_text("4")

    page.locator("#state-slider").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(text(page, "state-seq")).to_have_value("2")
    expect(text(page, "then-label")).to_have_text("spam")
    tab_to("state-back")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#confirm")).not_to_be_visible()
    assert page.evaluate("document.activeElement.id") == "state-back"
    page.keyboard.press("Enter")
    tab_to("confirm-yes")
    page.keyboard.press("Enter")
    expect(text(page, "figure-seen")).to_have_text("4")


@in_a_browser
@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (360, "light"), (1280, "dark")])
def test_it_fits_a_telephone_and_both_themes(server, opened, width, scheme):
    name = f"phone{width}{scheme}"
    server.create(name)
    server.learn(name, *MAIL, ("a" * 300, "b" * 120))
    page = opened(
        f"{server.url}/#/{name}", viewport={"width": width, "height": 640}, color_scheme=scheme, reduced_motion="reduce"
    )
    expect(page.locator("#wrongs li").first).to_be_visible()
    page.click("#labels-panel summary")
    page.click("#table-panel summary")
    page.fill("#try-example", "money at noon")
    page.click("#try-predict")
    expect(page.locator("#now-why li").first).to_be_visible()
    page.fill("#state-seq", "1")
    page.press("#state-seq", "Enter")
    expect(text(page, "then-label")).to_have_text("No label yet")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(PALE_TEXTS) == []
    assert page.evaluate(NAMELESS_FIELDS) == []
    luminance = (
        sum(map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3])) / 765
    )
    assert luminance < 0.2 if scheme == "dark" else luminance > 0.8
    page.click("#create-open")
    box = page.locator("#create").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


@in_a_browser
def test_the_chart_shows_numbers_and_states(server, opened):
    server.create("chart")
    for _ in range(6):
        server.learn("chart", *MAIL * 3)
    page = opened(f"{server.url}/#/chart")
    expect(text(page, "chart-reading")).to_contain_text("After 72 examples")
    assert "72 examples" in page.get_attribute("#chart", "aria-label")
    box = page.locator("#chart").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    expect(text(page, "chart-reading")).not_to_contain_text("After 72 examples")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 100)
    expect(text(page, "state-text")).to_contain_text("of 7")
    assert 2 <= int(page.input_value("#state-seq")) <= 6
    page.click("#table-panel summary")
    expect(page.locator("#table-rows tr").first).to_contain_text("72")
    page.click("#labels-panel summary")
    expect(page.locator("#labels-rows tr")).to_have_count(2)
    expect(page.locator("#labels-rows svg")).to_have_count(2)


@in_a_browser
def test_refusals_are_said_where_they_belong(server, opened):
    server.create("taken")
    page = opened(f"{server.url}/#/taken", allowed=(404, 409, 422))
    page.click("#create-open")
    page.fill("#create-name", "a/b")
    page.click("#create-submit")
    expect(text(page, "create-problem")).to_contain_text("a/b")
    page.fill("#create-name", "taken")
    page.fill("#create-parameters", '{"keep": "average"}')
    page.click("#create-submit")
    expect(text(page, "create-problem")).to_contain_text("taken")
    page.fill("#create-name", "other")
    page.fill("#create-parameters", '{"keep": "some"}')
    page.click("#create-submit")
    expect(text(page, "create-problem")).to_contain_text("some")
    page.click("#create-cancel")
    page.fill("#try-example", '{"a": 1e300}')
    page.click("#try-predict")
    expect(text(page, "try-problem")).to_be_visible()
    page.fill("#try-example", "{half")
    page.click("#try-predict")
    expect(text(page, "try-problem")).to_contain_text("not JSON")
    page.goto(f"{server.url}/#/nowhere")
    expect(text(page, "missing-heading")).to_contain_text("nowhere")


@in_a_browser
def test_what_models_learn_is_shown_as_text(server, opened):
    evil = "<img src=x onerror=alert(1)>"
    server.create("evil")
    features = {evil: 1, "</script>": 2, "__proto__": 3}
    server.ask(
        "POST", "/models/evil/learn", {"examples": [{"x": features, "y": evil}, {"x": {"b": 1}, "y": "constructor"}] * 3}
    )
    page = opened(f"{server.url}/#/evil")
    page.locator("#wrongs li button").first.click()
    expect(text(page, "now-label")).to_be_visible()
    expect(page.locator("#teach-labels button", has_text=evil)).to_be_visible()
    page.locator("#weights-section").scroll_into_view_if_needed()
    expect(page.locator("#weights h3", has_text=evil)).to_be_visible()
    assert page.locator("img").count() == 1


@in_a_browser
def test_many_labels_do_not_fill_the_page(server, opened):
    server.create("many")
    examples = [{"x": {f"f{label}": 1}, "y": label} for label in range(600)]
    server.ask("POST", "/models/many/learn", {"examples": examples})
    page = opened(f"{server.url}/#/many")
    expect(text(page, "figure-classes")).to_have_text("600")
    page.fill("#try-example", '{"f7": 1}')
    page.click("#try-predict")
    expect(text(page, "now-more")).to_contain_text("590 more labels")
    expect(page.locator("#teach-labels button")).to_have_count(8)
    assert page.locator("#teach-known option").count() <= 200
    page.fill("#teach-new", "599")
    page.press("#teach-new", "Enter")
    expect(text(page, "teach-done")).to_contain_text("599")
    assert len(server.ask("GET", "/models/many")["classes"]) == 600  # 599 is the whole number again, not a text
    page.locator("#weights-section").scroll_into_view_if_needed()
    expect(text(page, "weights-more")).to_contain_text("of 600 labels")
    page.fill("#weights-label", "599")
    expect(page.locator("#weights h3")).to_have_text(["599"])


@in_a_browser
def test_files_come_and_go(server, opened, tmp_path):
    model = OnlinePerceptron()
    model.learn_many([{"free": 1}, {"noon": 1}] * 3, ["spam", "ham"] * 3)
    model.save(tmp_path / "mine.model")
    page = opened(server.url)
    page.click("#create-open")
    page.fill("#create-name", "from-file")
    page.check("#create-from-file")
    page.set_input_files("#create-file", tmp_path / "mine.model")
    page.click("#create-submit")
    expect(text(page, "model-name")).to_have_text("from-file")
    expect(text(page, "figure-classes")).to_have_text("2")
    with page.expect_download() as download:
        page.click("#download-file")
    download.value.save_as(tmp_path / "again.model")
    assert download.value.suggested_filename == "from-file.model"
    assert rosenblatt.load(tmp_path / "again.model").predict_one({"free": 1}) == "spam"
    with page.expect_download() as download:
        page.click("#download-log")
    download.value.save_as(tmp_path / "log.jsonl")
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])["seq"] == 1
    page.click("#delete-open")
    page.click("#confirm-no")
    page.click("#delete-open")
    page.click("#confirm-yes")
    expect(text(page, "missing-heading")).to_contain_text("deleted")
    assert "from-file" not in [each["name"] for each in server.ask("GET", "/models")["models"]]


@in_a_browser
def test_a_hidden_page_holds_no_connection(server, opened):
    server.create("hidden")
    page = opened(f"{server.url}/#/hidden")
    expect(text(page, "connection-text")).to_have_text("Live")
    change = "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });" + (
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/events")):
        page.evaluate(change, True)
    server.learn("hidden", *MAIL)
    expect(text(page, "figure-seen")).to_have_text("0")
    page.evaluate(change, False)
    expect(text(page, "figure-seen")).to_have_text("4")


@in_a_browser
def test_a_lost_connection_is_seen_and_comes_back(opened, tmp_path):
    with PageServer(tmp_path / "folder") as server:
        server.create("mail")
        page = opened(f"{server.url}/#/mail")
        expect(text(page, "connection-text")).to_have_text("Live")
        server.stop()
        expect(text(page, "connection-text")).to_contain_text("Connection lost")
        server.options = ("--port", str(server.port))
        server.start()
        server.learn("mail", *MAIL)
        expect(text(page, "connection-text")).to_have_text("Live")  # by itself
        expect(text(page, "figure-seen")).to_have_text("4")


@in_a_browser
def test_a_token_is_asked_for_and_kept_in_the_tab_alone(opened, tmp_path):
    folder = tmp_path / "folder"
    command = [sys.executable, "-m", "rosenblatt", "token", "add", str(folder), "--scope", "predict", "--name", "page"]
    secret = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout.split()[-1]
    with PageServer(folder) as server:
        page = opened(server.url, allowed=(401, 403))
        expect(page.locator("#token")).to_be_visible()
        page.fill("#token-text", "rb_wrong")
        page.press("#token-text", "Enter")
        expect(text(page, "token-problem")).to_be_visible()
        page.fill("#token-text", secret)
        page.press("#token-text", "Enter")
        expect(text(page, "connection-text")).to_have_text("Live")
        page.click("#create-open")
        page.fill("#create-name", "mail")
        page.click("#create-submit")
        expect(text(page, "create-problem")).to_contain_text("administer")
        page.click("#create-cancel")
        assert secret not in page.url
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        page.reload()
        expect(text(page, "connection-text")).to_have_text("Live")
        page.click("#token-forget")
        expect(page.locator("#token")).to_be_visible()
