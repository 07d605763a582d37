"""Rows in order are those that scipy puts in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse as sp

from rosenblatt.data.parsing.sorting import SHORT, put_in_order


def check(lengths, columns, seed):
    rng = np.random.default_rng(seed)
    indptr = np.cumsum([0, *lengths]).astype(np.int64)
    indices = rng.integers(0, columns, indptr[-1]).astype(np.int32)
    values = rng.integers(-5, 6, indptr[-1]).astype(float)
    X = sp.csr_matrix((values.copy(), indices.copy(), indptr.copy()), shape=(len(lengths), columns))
    X.sum_duplicates()
    count = put_in_order(indptr, indices, values)
    assert indptr.tolist() == X.indptr.tolist()
    assert indices[:count].tolist() == X.indices.tolist()
    assert values[:count].tolist() == X.data.tolist()


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(1, 30), st.integers(0, 99))
def test_rows_in_order(lengths, columns, seed):
    check(lengths, columns, seed)


@pytest.mark.parametrize("length", [SHORT - 1, SHORT, SHORT + 1, 4000])
def test_long_rows(length):
    check([3, length, 5], 1000, length)
    check([length, length], 1 << 30, length)
