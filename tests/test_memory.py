"""No copy of X where its type and layout fit; data larger than memory can be mapped from a file."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from rosenblatt import Perceptron
from rosenblatt.engine.rows import as_rows

ROWS, FEATURES = 40_000, 100
rng = np.random.default_rng(0)


def peak_of(call):
    """The most memory that Python and numpy held during the call, beyond what they held before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_fit_does_not_copy_x(layout):
    X = layout(rng.standard_normal((ROWS, FEATURES), dtype=np.float32))
    y = rng.integers(0, 2, ROWS)
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes
    clf = Perceptron(max_iter=2, tol=None, keep="average").fit(X, y)
    assert peak_of(lambda: clf.fit(X, y)) < size / 4
    assert peak_of(lambda: clf.partial_fit(X, y)) < size / 4


def test_rows_are_views():
    X = rng.standard_normal((5, 3))
    assert np.shares_memory(as_rows(X).values, X)
    matrix = sp.csr_matrix(X)
    rows = as_rows(matrix)
    assert np.shares_memory(rows.values, matrix.data)
    assert np.shares_memory(rows.columns, matrix.indices)
    assert not rows.values.flags.writeable


def test_a_mapped_file_is_learned_from_in_less_memory_than_it_has(tmp_path):
    shape, limit = (200_000, 100), 20 * 2**20
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, shape[0], 10_000):
        mapped[start : start + 10_000] = rng.standard_normal((10_000, shape[1]), dtype=np.float32)
    y = (mapped[:, 0] > 0).astype(np.int64)
    del mapped
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert X.nbytes > 3 * limit
    clf = Perceptron(max_iter=2, tol=None).fit(X[:100], y[:100])  # the compiler's memory is no concern here
    assert peak_of(lambda: clf.fit(X, y)) < limit
    assert clf.score(X[:10_000], y[:10_000]) > 0.9


def test_votes_take_memory_for_mistakes_only():
    X = rng.standard_normal((5_000, 50))
    y = (X[:, 0] > 0).astype(int)
    clf = Perceptron(keep="vote", max_iter=3, tol=None).fit(X, y)
    votes = clf._model.votes
    assert votes.rows.shape[0] <= clf.n_mistakes_
    assert len(votes.moves) == clf.n_updates_ < 3_000
