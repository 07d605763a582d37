"""The table of features and the lists of their weights, against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.engine import hashtable as table
from rosenblatt.structured.features import ledger as ledgers

KEYS = st.integers(1, 12) | st.integers(1, 2**64 - 2)
PUSHES = st.lists(st.tuples(KEYS, st.integers(0, 9), st.integers(-3, 3)), max_size=60)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(KEYS, st.integers(0, 2**63), max_size=60), KEYS)
def test_a_table_answers_as_a_dictionary_and_goes_on_doing_so_when_it_grows(known, other):
    slots = table.new_slots(table.capacity_for(len(known)))
    for key, payload in known.items():
        at = table.claim(slots, np.uint64(key))
        assert slots[at, 1] == table.ABSENT
        slots[at, 1] = payload
        assert table.claim(slots, np.uint64(key)) == at
    for grown in (slots, table.resized(slots, 4 * len(slots))):
        assert {key: int(table.find(grown, np.uint64(key))) for key in known} == known
        if other not in known:
            assert table.find(grown, np.uint64(other)) == table.ABSENT


def test_keys_that_want_the_same_slot_are_all_found():
    slots = table.new_slots(16)
    for i in range(7):
        slots[table.claim(slots, np.uint64(15 + 16 * i)), 1] = i
    assert [int(table.find(slots, np.uint64(15 + 16 * i))) for i in range(8)] == [*range(7), int(table.ABSENT)]


def mixed(*values: int) -> int:
    h = np.uint64(1)
    for value in values:
        h = np.uint64(table.mix(h, np.uint64(value)))
    return int(h)


def test_mixing_depends_on_the_order_and_is_never_nothing():
    assert mixed(3, 4) != mixed(4, 3)
    assert mixed(3) != mixed(3, 0) != 0
    assert table.mix(np.uint64(7), np.uint64(7)) != 0  # 7 ^ 7 = 0, which stands for no feature


def test_mixing_fills_the_slots_evenly():
    """Keys of few, small values, as tags and words are numbered, hardly ever meet: chi squared of 256 slots."""
    keys = np.array([mixed(i, j) for i in range(64) for j in range(64)], np.uint64)
    counts = np.bincount((keys & np.uint64(255)).astype(np.int64), minlength=256)
    assert len(np.unique(keys)) == 64 * 64
    assert ((counts - 16.0) ** 2 / 16).sum() < 330  # the 0.1 % point of 255 degrees of freedom


@settings(deadline=None, max_examples=40)
@given(PUSHES, st.booleans(), st.integers(1, 7))
def test_a_ledger_is_a_dictionary_of_weights_and_drifts(pushes, average, together):
    ledger, w, drift = ledgers.new_ledger(), {}, {}
    for clock, (key, outcome, tau) in enumerate(pushes):
        if clock % together == 0:
            ledger = ledgers.roomy(ledger, together)
        ledgers.push(ledger, np.uint64(key), outcome, float(tau), float(clock))
        w[key, outcome] = w.get((key, outcome), 0) + tau
        drift[key, outcome] = drift.get((key, outcome), 0) + clock * tau
    clock = max(len(pushes), 1)
    book = ledgers.freeze(ledger, clock, average)
    for key in {key for key, _, _ in pushes} | {5}:
        last, predicting = np.zeros(10, np.float32), np.zeros(10, np.float32)
        row = ledgers.row_of(ledger, np.uint64(key))
        assert (row >= 0) == any(key == known for known, _ in w)
        if row >= 0:
            ledgers.add_scores(ledger, row, last)
        ledgers.add_book(book, np.uint64(key), predicting)
        assert last.tolist() == [w.get((key, outcome), 0) for outcome in range(10)]
        mean = [w.get((key, o), 0) - average * drift.get((key, o), 0) / clock for o in range(10)]
        assert predicting.tolist() == np.array(mean, np.float32).tolist()
    assert ledgers.squared_norm(ledger) == sum(value**2 for value in w.values())
    assert (book.weights != 0).all()
    arrays = ledgers.written(ledger)
    again = ledgers.written(ledgers.taken_up(arrays))
    assert {name: part.tobytes() for name, part in again.items()} == {name: part.tobytes() for name, part in arrays.items()}


def test_a_ledger_that_was_written_goes_on_as_if_it_had_not_been():
    ledger = ledgers.new_ledger()
    for i in range(40):
        ledger = ledgers.roomy(ledger, 1)
        ledgers.push(ledger, np.uint64(1 + i % 7), i % 5, 1.0, float(i))
        other = ledgers.taken_up(ledgers.written(ledger))
        for which in (ledger, other := ledgers.roomy(other, 1)):
            ledgers.push(which, np.uint64(3), 9, 1.0, float(i))
        assert all(
            np.array_equal(a, b)
            for a, b in zip(ledgers.written(ledger).values(), ledgers.written(other).values(), strict=True)
        )
        ledger = ledgers.roomy(ledger, 1)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("keys", lambda a: a[:-1]),
        ("keys", lambda a: a * np.uint64(0)),
        ("keys", lambda a: a[[0, 0]]),
        ("sizes", lambda a: a + 1),
        ("sizes", lambda a: a - 2),
        ("sizes", lambda a: a.astype(np.int32)),
        ("outcomes", lambda a: a[:-1]),
        ("drift", lambda a: a[:-1]),
        ("w", lambda a: a.reshape(1, -1)),
    ],
)
def test_a_damaged_ledger_is_refused_before_compiled_code_sees_it(name, change):
    ledger = ledgers.roomy(ledgers.new_ledger(), 3)
    for key, outcome in ((7, 0), (7, 1), (8, 0)):
        ledgers.push(ledger, np.uint64(key), outcome, 1.0, 0.0)
    arrays = ledgers.written(ledger)
    with pytest.raises(ValueError, match=r"list|keys|weights|must be a row"):
        ledgers.taken_up(arrays | {name: change(arrays[name])})


def test_small_weights_are_pruned_and_so_are_features_without_any():
    ledger = ledgers.roomy(ledgers.new_ledger(), 3)
    for key, outcome, tau in ((7, 0, 1.0), (7, 1, 3.0), (8, 0, -1.0)):
        ledgers.push(ledger, np.uint64(key), outcome, tau, 0.0)
    keys, sizes, outcomes, weights = ledgers.kept(ledger, 1, False, prune=1.0)
    assert (keys.tolist(), sizes.tolist(), outcomes.tolist(), weights.tolist()) == ([7], [1], [1], [3.0])


def test_a_list_may_name_every_outcome():
    ledger = ledgers.new_ledger()
    for outcome in range(ledgers.OUTCOMES):
        if outcome % 4096 == 0:
            ledger = ledgers.roomy(ledger, 4096)
        ledgers.push(ledger, np.uint64(1), outcome, 1.0, 0.0)
    scores = np.zeros(ledgers.OUTCOMES, np.float32)
    ledgers.add_book(ledgers.freeze(ledger, 1, True), np.uint64(1), scores)
    assert (scores == 1).all()


def test_an_average_that_is_zero_is_zero():
    """1 − 3·(1/3) is not 0 where a quotient is computed as a product."""
    for clock in range(1, 60):
        assert ledgers.mean_weight(np.float32(1.0), float(clock), float(clock)) == 0
