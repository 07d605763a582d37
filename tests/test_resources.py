"""Memory is that of the function alone, the same each time; time is measured, and no law or equality depends on it."""

import re
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from rosenblatt import plot
from rosenblatt.cli import main
from rosenblatt.cli.count import Measure
from rosenblatt.counting import Resources, growth, measure_resources
from rosenblatt.counting.growth_rates import MEASURES

SIZES = range(8, 65, 8)


def zeros(n):
    return [0] * n


def running_sum(a):
    total = 0.0
    for number in a:
        total = total + number
    return total


def outer(n):
    products = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            products[i, j] = i * j
    return products


def sort_in_place(a):
    for i in range(1, len(a)):
        j = i
        while j > 0 and a[j - 1] > a[j]:
            a[j - 1], a[j] = a[j], a[j - 1]
            j -= 1


def falling(n):
    return [float(i) for i in range(n, 0, -1)]


def test_what_allocates_nothing_takes_no_memory():
    assert measure_resources(lambda: None).peak_bytes == 0
    assert measure_resources(lambda a: a, list(range(1000))).peak_bytes == 0, "the argument was there before"


def test_the_peak_counts_what_is_freed_again():
    size = 100_000
    assert measure_resources(lambda: len(bytes(size))).peak_bytes >= size
    one_by_one = measure_resources(lambda: [len(bytes(size)) for _ in range(10)]).peak_bytes
    at_once = measure_resources(lambda: len([bytes(size) for _ in range(10)])).peak_bytes
    assert size <= one_by_one < 2 * size < 10 * size <= at_once


def test_what_another_thread_allocates_meanwhile_is_not_taken_for_the_functions_own():
    others = iter([50_000, 0, 70_000, 0])

    def disturbed():
        other = bytes(next(others, 0)) if tracemalloc.is_tracing() else b""
        return len(other) + len(bytes(1000))

    assert 1000 <= measure_resources(disturbed).peak_bytes < 2000


def test_other_threads_wait_until_the_memory_is_measured():
    stop = threading.Event()

    def work():
        while not stop.wait(0.0005):
            _ = [(i, {i: i}) for i in range(200)]

    quiet = [measure_resources(zeros, n).peak_bytes for n in SIZES]
    threads = [threading.Thread(target=work) for _ in range(3)]
    interval = sys.getswitchinterval()
    for thread in threads:
        thread.start()
    try:
        assert [[measure_resources(zeros, n).peak_bytes for n in SIZES] for _ in range(5)] == [quiet] * 5
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert sys.getswitchinterval() == interval


def test_the_least_is_taken_where_no_two_runs_agree():
    sizes = iter(range(70_000, 0, -10_000))

    def never_the_same():
        return len(bytes(next(sizes))) if tracemalloc.is_tracing() else 0

    assert 10_000 <= measure_resources(never_the_same).peak_bytes < 11_000


@pytest.mark.parametrize(
    ("function", "make", "law"), [(zeros, None, "n"), (running_sum, falling, "1"), (outer, None, "n²")]
)
def test_memory_has_a_law_of_its_own(function, make, law):
    found = growth(function, SIZES, make=make, resources=True)
    assert found.memory.law == law
    assert found.memory.exact
    assert found.memory.unit == "bytes"
    assert found.memory.counts == tuple(each.peak_bytes for each in found.resources)
    again = growth(function, SIZES, make=make, resources=True)
    assert again.memory.counts == found.memory.counts
    assert again == found, "whatever the clock said"
    assert found.law == growth(function, SIZES, make=make).law


def test_numbers_are_eight_bytes():
    assert growth(zeros, SIZES, resources=True).memory.coefficients["n"] == 8
    assert growth(outer, SIZES, resources=True).memory.coefficients["n²"] == 8


def test_arguments_are_copied_so_that_every_run_meets_the_same():
    a = falling(20)
    assert measure_resources(sort_in_place, a).seconds > 0
    assert a == falling(20)
    with_clock = growth(sort_in_place, range(1, 9), make=falling, resources=True)
    assert with_clock.counts == growth(sort_in_place, range(1, 9), make=falling).counts
    assert all(seconds > 0 for seconds, _ in with_clock.resources)


def test_more_work_takes_longer():
    assert measure_resources(sort_in_place, falling(300)).seconds > measure_resources(sort_in_place, falling(10)).seconds


def test_tracing_goes_on_where_it_was_on():
    tracemalloc.start()
    try:
        kept = bytes(5_000_000)
        assert measure_resources(lambda: bytes(10_000)).peak_bytes < 20_000, "not what was there before"
        assert tracemalloc.is_tracing()
        assert len(kept) == 5_000_000
    finally:
        tracemalloc.stop()
    measure_resources(lambda: None)
    assert not tracemalloc.is_tracing()


def test_tracing_ends_when_the_function_fails():
    def fails():
        raise LookupError("no")

    with pytest.raises(LookupError):
        measure_resources(fails)
    assert not tracemalloc.is_tracing()


def test_what_cannot_be_copied_is_refused():
    with pytest.raises(TypeError, match=r"args must be arguments that can be copied .*generator.* rather than generators"):
        measure_resources(list, (i for i in range(3)))


def test_resources_are_shown_where_they_were_asked_for():
    found = growth(zeros, SIZES, resources=True)
    assert "peak bytes" in str(found)
    assert f"bytes, n: {found.memory.formula}" in str(found)
    plain = growth(zeros, SIZES)
    assert plain.resources == ()
    assert plain.memory is None
    assert "bytes" not in str(plain)
    assert isinstance(found.resources[0], Resources)


def test_counts_of_every_kind_come_with_any_law():
    found = growth(running_sum, SIZES, make=falling, measure="flops")
    assert found.unit == "flops"
    assert [counts.flops for counts in found.kinds] == list(found.counts) == list(SIZES)
    assert growth(running_sum, SIZES, make=falling, measure=lambda run: run.flops).unit == "operations"


def test_the_plot_names_what_it_draws():
    found = growth(outer, SIZES, resources=True)
    assert plot.growth(found).get_ylabel() == "operations"
    assert plot.growth(found.memory).get_ylabel() == "bytes"
    assert plot.growth(growth(running_sum, SIZES, make=falling, measure="flops")).get_ylabel() == "flops"


def test_the_command_offers_every_measure_and_no_other():
    assert {*Measure} == {*MEASURES}


def test_a_count_that_takes_long_says_at_which_size_it_is(tmp_path, monkeypatch, capfd):
    file = tmp_path / "slow.py"
    file.write_text("import time\n\n\ndef doze(n):\n    time.sleep(0.05)\n")
    monkeypatch.setattr("rosenblatt.cli.count._PATIENCE", 0.02)
    main(["count", f"{file}::doze"])
    assert re.search(r"^still counting, at size \d; Ctrl-C ends it$", capfd.readouterr().err, re.MULTILINE)
