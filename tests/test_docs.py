"""The documentation runs, and it leaves nothing out."""

import doctest
import importlib
import inspect
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import rosenblatt
from docs.pages import DOCS, FIGURES, PAGES, ROOT, page_name, save_figures, shown_figures
from docs.public import public_names
from rosenblatt import Perceptron
from rosenblatt.engine import train
from rosenblatt.theory.bounds import THEOREMS


def imports_cupy(name):
    return re.search(r"^import cupy", Path(find_spec(name).origin).read_text(encoding="utf-8"), re.MULTILINE) is not None


# Where there is no CuPy, the modules that drive a GPU cannot be imported.
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(rosenblatt.__path__, "rosenblatt.")
    if find_spec("cupy") or not imports_cupy(module.name)
)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_page_runs_and_shows_the_figures_that_it_draws(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    drawn = save_figures(page, tmp_path)
    assert shown_figures(page) == [path.name for path in drawn]
    for path in drawn:
        new, kept = path.read_bytes(), (FIGURES / path.name).read_bytes()
        assert new[16:24] == kept[16:24], f"{path.name} has another width or height: make figures"
        assert 0.8 < len(new) / len(kept) < 1.25, f"{path.name} is another picture: make figures"


def test_every_figure_is_shown_by_the_page_that_draws_it():
    assert len({page.stem for page in PAGES if shown_figures(page)}) == sum(bool(shown_figures(page)) for page in PAGES)
    assert {path.name for path in FIGURES.iterdir()} == {name for page in PAGES for name in shown_figures(page)}


# Pages of text, tables and commands, which speak of nothing that could be drawn.
NOTHING_TO_SEE = {
    "CONTRIBUTING.md", "docs/benchmarks.md", "docs/design/changes.md", "docs/design/contributing.md",
    "docs/design/laws.md", "docs/guides/scikit_learn.md", "docs/guides/vowpal_wabbit.md", "docs/howto/command_line.md",
    "docs/howto/gpu.md", "docs/howto/questions.md", "docs/howto/saving.md", "docs/howto/svmlight.md",
    "docs/howto/tables.md", "docs/theory/corrections.md",
}  # fmt: skip


def test_pages_that_speak_of_something_visible_show_it():
    without = {page_name(page) for page in PAGES if "![" not in page.read_text(encoding="utf-8")}
    lists = {page_name(page) for page in DOCS.glob("*/index.md")}
    assert without - lists == NOTHING_TO_SEE


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert "://" in link or (page.parent / link).exists(), f"{page.name} links to {link}"


@pytest.mark.parametrize("name", ["rosenblatt", *MODULES])
def test_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def public_functions():
    """(name, function) of all public functions, and of all public methods of public classes."""
    for name in ["rosenblatt", *MODULES]:
        if ".cli" in name or name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        for member in getattr(module, "__all__", ()):
            thing = getattr(module, member)
            if inspect.isclass(thing):
                found = {each: getattr(thing, each, None) for each in dir(thing) if not each.startswith("_")}
                yield from ((f"{member}.{each}", method) for each, method in found.items() if inspect.isroutine(method))
            elif inspect.isroutine(thing):
                yield member, thing


def sections(doc):
    """The names that each section of a docstring describes."""
    parts = re.split(r"^([A-Z]\w+)\n-+\n", doc, flags=re.MULTILINE)
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        entries = re.findall(r"^(\S.*?)(?: :.*)?$", text, flags=re.MULTILINE)
        yield title, {name.strip(" *") for entry in entries for name in entry.split(",")}


def test_every_public_function_has_its_parameters_and_results_described():
    missing = set()
    for name, function in public_functions():
        if not (getattr(function, "__module__", None) or "").startswith("rosenblatt"):
            continue
        signature, described = inspect.signature(function), dict(sections(inspect.getdoc(function) or ""))
        unknown = set(signature.parameters) - {"self", "cls"} - described.get("Parameters", set())
        missing |= {f"{name}: parameter {each}" for each in unknown}
        nothing = (None, "None", "NoReturn", inspect.Signature.empty)
        if signature.return_annotation not in nothing and not {"Returns", "Yields"} & described.keys():
            missing.add(f"{name}: Returns")
    assert not missing, "\n".join(sorted(missing))


def test_every_public_name_shows_its_use():
    finder, modules = doctest.DocTestFinder(), [importlib.import_module(name) for name in ["rosenblatt", *MODULES]]
    found = {test.docstring: test.examples for module in modules for test in finder.find(module)}
    names = {f"{module}.{name}": thing for module, name, thing in public_names()}
    assert len(names) > 250
    missing = []
    for name, thing in names.items():
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        doc = vars(thing)["__doc__"] if inspect.isclass(thing) else thing.__doc__
        if not (doc or "").strip().partition("\n")[0].endswith("."):
            missing.append(f"{name}: a sentence as its first line")
        if not any(not example.options.get(doctest.SKIP) for example in found.get(doc, ())):
            missing.append(f"{name}: an example that test_docstrings_run runs")
    assert not missing, "\n".join(sorted(missing))


def test_the_guide_names_every_parameter_and_every_reason_to_stop():
    guide = (ROOT / "docs" / "learners" / "perceptron.md").read_text(encoding="utf-8")
    for parameter in [*inspect.signature(Perceptron).parameters, *inspect.signature(Perceptron.fit).parameters]:
        assert parameter in ("self", "X", "y") or re.search(rf"\b{parameter}\b", guide), f"{parameter} is not in the guide"
    for word in reasons():
        assert f"| `{word}` |" in guide, f"stop_reason_ {word} is not in the guide"


def reasons():
    """The words that the trainer can answer, read from its source, and the one of a stream."""
    source = inspect.getsource(train.train)
    words = set(re.findall(r'"(\w+)"', source[source.index("reasons = {") : source.index("reason = next")]))
    assert len(words) >= 9
    return words | {"partial_fit"}


def test_the_readme_maps_every_package_and_packages_speak_for_themselves():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__, f"{name} does not say what it is"
        if name.count(".") == 1 and not name.endswith("__main__"):
            shown = name.removeprefix("rosenblatt.") + ("/" if hasattr(module, "__path__") else ".py")
            assert f"`{shown}`" in readme, f"{shown} is not on the map in README.md"


def test_the_top_level_stays_small():
    assert len(list(Path(rosenblatt.__file__).parent.glob("*.py"))) <= 6


def test_the_family_lists_every_learner():
    family = (ROOT / "docs" / "learners" / "family.md").read_text(encoding="utf-8")
    learners = [name for name in rosenblatt.__all__ if hasattr(getattr(rosenblatt, name), "predict")]
    assert len(learners) > 20
    for name in learners:
        assert f"`{name}" in family, f"{name} is not on the page of the family"


def test_the_guide_for_theorists_has_every_bound_and_the_tests_that_it_names_exist():
    guide = (ROOT / "docs" / "guides" / "theorists.md").read_text(encoding="utf-8")
    for name in THEOREMS:
        assert f"`{name}`" in guide, f"{name} is not in the guide for theorists"
    table = guide.partition("| theorem | function | test |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    named = [re.findall(r"`(test_\w+\.py)::(\w+)`", row) for row in table]
    assert [row for row, tests in zip(table, named, strict=True) if not tests] == ["| p-norms | `p_norm` | the same |"]
    assert len(table) > 25
    for file, test in [each for tests in named for each in tests]:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"there is no {test} in {file}"


def test_the_readme_leads_to_every_section():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in [DOCS / "index.md", *DOCS.glob("*/index.md")]:
        assert f"({page_name(page)})" in readme, f"README.md does not lead to {page_name(page)}"


@pytest.mark.parametrize(
    "index", [index for index in DOCS.glob("*/index.md") if index.parent.name != "reference"], ids=page_name
)
def test_a_section_links_to_each_of_its_pages(index):
    text = index.read_text(encoding="utf-8")  # where Markdown is read as it is, a toctree has no links
    for page in {*index.parent.glob("*.md")} - {index}:
        assert f"]({page.name})" in text, f"{page_name(index)} does not link to {page.name}"


def test_the_page_on_serving_has_every_limit_as_it_is_and_every_route():
    limits, app = pytest.importorskip("rosenblatt.serve.limits"), pytest.importorskip("rosenblatt.serve.app")
    page = (ROOT / "docs" / "howto" / "serving.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", page, re.MULTILINE)
    found = {name: (default, status) for name, default, status in rows}
    expected = {name: limit_text(name, value) for name, value in limits.Limits()._asdict().items()}
    assert {name: default for name, (default, _) in found.items()} == expected
    for name, status in limits.STATUS.items():
        assert found[name][1] == str(status), f"{name} is answered with {status}"
    for route in [route for router in app.ROUTERS for route in router.routes]:
        path = route.path.replace("{name}", "NAME")
        assert "/page/" in path or f"{next(iter(route.methods))} {path}`" in page, f"{path} is not on the page"


def limit_text(name, value):
    """A limit as the page shows it."""
    if value is None:
        return "none"
    for unit, text in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if name.endswith("_bytes") and value % unit == 0:
            return f"{value // unit} {text}"
    unit = " s" if name.endswith("_seconds") else " days" if name.endswith("_days") else ""
    return f"{value:,.0f}{unit}"
