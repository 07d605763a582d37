"""A fingerprint is XXH64, however the bytes are cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.data.parsing.fingerprint import Fingerprint

PRINTED = {  # by `xxhsum -H1`
    b"": "ef46db3751d8e999",
    b"a": "d24ec4f1a98c6e5b",
    b"abc": "44bc2cf5ad770999",
    bytes(range(100)): "6ac1e58032166597",
}


@pytest.mark.parametrize("data", PRINTED)
def test_it_is_xxh64(data):
    assert Fingerprint(data).hexdigest() == PRINTED[data]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.binary(max_size=80), max_size=8))
def test_cuts_do_not_matter(parts):
    fingerprint = Fingerprint()
    for part in parts:
        fingerprint.update(memoryview(part))
    assert fingerprint.hexdigest() == Fingerprint(b"".join(parts)).hexdigest()
