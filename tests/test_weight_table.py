"""The table of features and the lists of their weights, against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.engine import hashtable
from rosenblatt.structured.features import weight_table
from rosenblatt.structured.features.weight_table import WeightTable

KEYS = st.integers(1, 12) | st.integers(1, 2**64 - 2)
PUSHES = st.lists(st.tuples(KEYS, st.integers(0, 9), st.integers(-3, 3)), max_size=60)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(KEYS, st.integers(0, 2**63), max_size=60), KEYS)
def test_a_table_answers_as_a_dictionary_and_goes_on_doing_so_when_it_grows(known, other):
    slots = hashtable.new_slots(hashtable.capacity_for(len(known)))
    for key, payload in known.items():
        at = hashtable.claim(slots, np.uint64(key))
        assert slots[at, 1] == hashtable.ABSENT
        slots[at, 1] = payload
        assert hashtable.claim(slots, np.uint64(key)) == at
    for grown in (slots, hashtable.resized(slots, 4 * len(slots))):
        assert {key: int(hashtable.find(grown, np.uint64(key))) for key in known} == known
        if other not in known:
            assert hashtable.find(grown, np.uint64(other)) == hashtable.ABSENT


def test_keys_that_want_the_same_slot_are_all_found():
    slots = hashtable.new_slots(16)
    for i in range(7):
        slots[hashtable.claim(slots, np.uint64(15 + 16 * i)), 1] = i
    assert [int(hashtable.find(slots, np.uint64(15 + 16 * i))) for i in range(8)] == [*range(7), int(hashtable.ABSENT)]


def mixed(*values: int) -> int:
    h = np.uint64(1)
    for value in values:
        h = np.uint64(hashtable.mix(h, np.uint64(value)))
    return int(h)


def test_mixing_depends_on_the_order_and_is_never_nothing():
    assert mixed(3, 4) != mixed(4, 3)
    assert mixed(3) != mixed(3, 0) != 0
    assert hashtable.mix(np.uint64(7), np.uint64(7)) != 0  # 7 ^ 7 = 0, which stands for no feature


def test_mixing_fills_the_slots_evenly():
    """Keys of few, small values, as tags and words are numbered, hardly ever meet: chi squared of 256 slots."""
    keys = np.array([mixed(i, j) for i in range(64) for j in range(64)], np.uint64)
    counts = np.bincount((keys & np.uint64(255)).astype(np.int64), minlength=256)
    assert len(np.unique(keys)) == 64 * 64
    assert ((counts - 16.0) ** 2 / 16).sum() < 330  # the 0.1 % point of 255 degrees of freedom


@settings(deadline=None, max_examples=40)
@given(PUSHES, st.booleans(), st.integers(1, 7))
def test_a_table_is_a_dictionary_of_weights_and_drifts(pushes, average, together):
    table, w, drift = weight_table.new_weight_table(), {}, {}
    for clock, (key, outcome, tau) in enumerate(pushes):
        if clock % together == 0:
            table = weight_table.reserve(table, together)
        weight_table.update(table, np.uint64(key), outcome, float(tau), float(clock))
        w[key, outcome] = w.get((key, outcome), 0) + tau
        drift[key, outcome] = drift.get((key, outcome), 0) + clock * tau
    clock = max(len(pushes), 1)
    frozen = weight_table.index_lists(*weight_table.freeze_lists(table, clock, average))
    for key in {key for key, _, _ in pushes} | {5}:
        last, predicting = np.zeros(10, np.float32), np.zeros(10, np.float32)
        row = weight_table.find_row(table, np.uint64(key))
        assert (row >= 0) == any(key == known for known, _ in w)
        if row >= 0:
            weight_table.add_row_scores(table, row, last)
        weight_table.add_feature_scores(frozen, np.uint64(key), predicting)
        assert last.tolist() == [w.get((key, outcome), 0) for outcome in range(10)]
        mean = [w.get((key, o), 0) - average * drift.get((key, o), 0) / clock for o in range(10)]
        assert predicting.tolist() == np.array(mean, np.float32).tolist()
    assert weight_table.squared_norm(table) == sum(value**2 for value in w.values())
    assert (frozen.weights != 0).all()
    arrays = table.to_parts().arrays
    again = WeightTable.from_parts(table.to_parts(), 10).to_parts().arrays
    assert {name: part.tobytes() for name, part in again.items()} == {name: part.tobytes() for name, part in arrays.items()}


def test_a_table_that_was_written_goes_on_as_if_it_had_not_been():
    table = weight_table.new_weight_table()
    for i in range(40):
        table = weight_table.reserve(table, 1)
        weight_table.update(table, np.uint64(1 + i % 7), i % 5, 1.0, float(i))
        other = WeightTable.from_parts(table.to_parts(), 10)
        for which in (table, other := weight_table.reserve(other, 1)):
            weight_table.update(which, np.uint64(3), 9, 1.0, float(i))
        assert all(
            np.array_equal(a, b)
            for a, b in zip(table.to_parts().arrays.values(), other.to_parts().arrays.values(), strict=True)
        )
        table = weight_table.reserve(table, 1)


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
def test_a_damaged_table_is_refused_before_compiled_code_sees_it(name, change):
    table = weight_table.reserve(weight_table.new_weight_table(), 3)
    for key, outcome in ((7, 0), (7, 1), (8, 0)):
        weight_table.update(table, np.uint64(key), outcome, 1.0, 0.0)
    parts = table.to_parts()
    parts.arrays[name] = change(parts.arrays[name])
    with pytest.raises((TypeError, ValueError), match=r"list|keys|weights|must have"):
        WeightTable.from_parts(parts, 2)


def test_small_weights_are_pruned_and_so_are_features_without_any():
    table = weight_table.reserve(weight_table.new_weight_table(), 3)
    for key, outcome, tau in ((7, 0, 1.0), (7, 1, 3.0), (8, 0, -1.0)):
        weight_table.update(table, np.uint64(key), outcome, tau, 0.0)
    keys, sizes, outcomes, weights = weight_table.freeze_lists(table, 1, False, prune=1.0)
    assert (keys.tolist(), sizes.tolist(), outcomes.tolist(), weights.tolist()) == ([7], [1], [1], [3.0])


def test_a_list_may_name_every_outcome():
    table = weight_table.new_weight_table()
    for outcome in range(weight_table.OUTCOMES):
        if outcome % 4096 == 0:
            table = weight_table.reserve(table, 4096)
        weight_table.update(table, np.uint64(1), outcome, 1.0, 0.0)
    scores = np.zeros(weight_table.OUTCOMES, np.float32)
    frozen = weight_table.index_lists(*weight_table.freeze_lists(table, 1, True))
    weight_table.add_feature_scores(frozen, np.uint64(1), scores)
    assert (scores == 1).all()


def test_an_average_that_is_zero_is_zero():
    """1 − 3·(1/3) is not 0 where a quotient is computed as a product."""
    for clock in range(1, 60):
        assert weight_table.mean_weight(np.float32(1.0), float(clock), float(clock)) == 0
