"""The tool that tests the tests: its mutants are small, compile, and leave alone what no test should judge."""

import ast

import pytest

from bench.mutants.choice import ROOMS, SOURCES, draw, equivalent_mutants, named_mutants
from bench.mutants.operators import changes, mutant
from bench.mutants.private_tree import PACKAGE, PrivateTree
from bench.mutants.reach import function_names
from bench.mutants.runner import Job, Runner


def mutants_of(source):
    """The first line that differs, of each mutant of a source."""
    tree = ast.parse(source)
    found = [mutant("some.py", source, tree, change) for change in changes(tree)]
    return [(each.operator, each.new) for each in found if each is not None]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a < b", [("comparison", "(a <= b)")]),
        ("a == b", [("comparison", "(a != b)")]),
        ("a + b * c", [("arithmetic", "(a - b * c)"), ("arithmetic", "a + (b / c)")]),
        ("x = 7", [("constant", "x = 8")]),
        ("a and b", [("and/or", "(a or b)")]),
        ("not a", [("not dropped", "a")]),
        ("-a", [("minus dropped", "a")]),
        ("a if b else c", [("condition negated", "a if not (b) else c")]),
        ("if a: b", [("condition negated", "if not (a): b")]),
        ("min(a, b)", [("statement dropped", "pass"), ("another function", "max(a, b)")]),
        ("x = f(a, b=c)", [("keyword dropped", "x = f(a)")]),
        ("x.y = z", [("statement dropped", "pass")]),
        ("x = a[b:c]", [("slice", "x = a[:c]"), ("slice", "x = a[b:]")]),
        ("x += y", [("augmented", "x = y"), ("statement dropped", "pass")]),
        ("def f(): return a, b", [("results swapped", "def f(): return (b, a)")]),
        ("for x in y: break", [("break/continue", "for x in y: continue")]),
        ("raise A(b)", [("statement dropped", "pass")]),
    ],
)
def test_each_operator_makes_one_small_mistake(line, expected):
    assert mutants_of(line) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2."""',
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "@cache(maxsize=3)\ndef f(): ...",
        "class A:\n    def __repr__(self): return 1 + 2",
        "__all__ = [1]",
        "if TYPE_CHECKING:\n    x = 1",
        'x = f"{1 + 2}"',
        'x = "a" + b + "c"',
        "assert 1 < 2",
        "prefetch(x, 1)",
        "Number = int | float",
    ],
)
def test_what_no_test_should_judge_is_left_alone(source):
    assert mutants_of(source) == []


def test_an_error_is_dropped_but_its_text_stays():
    assert mutants_of("raise A(b + 1, c=2)") == [("statement dropped", "pass")]


def test_functions_of_the_same_name_are_told_apart():
    source = "@a\ndef _(): 1\n\n\nclass B:\n    x = 1\n\n    def c(self):\n        lambda: 2\n\n\ndef _(): 3\n"
    assert function_names(ast.parse(source)) == {1: "_", 2: "_", 8: "B.c", 9: "B.c", 12: "_#2"}


@pytest.mark.parametrize("room", ROOMS)
def test_drawn_mutants_compile_and_differ_from_the_source(room):
    for each in draw(room, seed=0, count=1):
        assert each.file.split("/")[0].removesuffix(".py") == room
        source = (SOURCES / each.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(each.text)) != ast.dump(ast.parse(source))


def test_a_seed_draws_the_same_mutants_again():
    drawn = list(draw("rules", seed=0, count=9))
    assert len({each.key for each in drawn}) == 9
    assert drawn[:5] == list(draw("rules", seed=0, count=5))
    assert drawn != list(draw("rules", seed=1, count=9))


def test_each_mistake_of_the_table_stands_once_in_the_sources():
    table = named_mutants()
    assert len({each.operator for each in table}) == len(table) >= 30
    for each in table:
        source = (SOURCES / each.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(each.text)) != ast.dump(ast.parse(source))


def test_each_explained_mutant_is_of_a_line_that_is_still_there():
    for (file, old, new), reason in equivalent_mutants().items():
        lines = [line.strip() for line in (SOURCES / file).read_text(encoding="utf-8").splitlines()]
        assert old in " ".join(lines), (file, old)
        assert old != new
        assert reason.endswith(".")


def test_a_mutant_is_caught_and_taken_back(tmp_path):
    """In a private tree, a test passes, fails for a mutant, is late for one without end, and passes again."""
    tree = PrivateTree(tmp_path / "tree")
    (tree.folder / "tests" / "test_seven.py").write_text(
        "def test_seven():\n    from rosenblatt.conditions import SEVEN\n    assert SEVEN == 7\n"
    )
    path = tree.folder / PACKAGE / "conditions.py"
    source = path.read_text() + "\nSEVEN = 7\n"
    path.write_text(source)
    job = Job({"tests/test_seven.py": {"test_seven": 0.01}}, cpu_seconds=60, wall_seconds=200)

    runner = Runner(tree.folder)
    try:
        assert runner.run(job).status == "passed"
        with tree.mutated("conditions.py", source.replace("= 7", "= 8")):
            outcome = runner.run(job)
            assert (outcome.status, outcome.test) == ("failed", "tests/test_seven.py::test_seven")
        with tree.mutated("conditions.py", source.replace("SEVEN = 7", "while True: pass")):
            assert runner.run(job._replace(cpu_seconds=1)).status == "timed out"
        assert runner.run(job).status == "passed"
    finally:
        runner.close()
