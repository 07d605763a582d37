"""Certificates come back from files as they went in, and a damaged file is a clean error or a proof that does not hold."""

import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.exact import documents
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.documents import UnreadableCertificate, as_facts, from_facts
from rosenblatt.feasibility.programs import Optimal
from rosenblatt.theory import Inseparable, Margin, Separable, gamma_affine, separability

CORNERS = [[0, 0], [0, 1], [1, 0], [1, 1]]
KINDS = {"separable": Separable, "inseparable": Inseparable, "margin": Margin}


@dataclass(frozen=True)
class Everything:
    """One of each."""

    whole: int
    part: Fraction
    near: float
    flag: bool
    word: str
    wholes: tuple[int, ...]
    parts: tuple[Fraction, ...]


integers = st.integers(-(2**200), 2**200)
fractions = st.builds(Fraction, integers, st.integers(1, 2**200))


@given(st.builds(
    Everything, integers, fractions, st.floats(allow_nan=False), st.booleans(), st.text(),
    st.lists(integers).map(tuple), st.lists(fractions).map(tuple),
))  # fmt: skip
def test_everything_comes_back_exactly(said):
    facts = json.loads(json.dumps(as_facts(said)))
    assert from_facts(Everything, facts) == said


def test_integers_of_any_length_come_back():
    huge = Combination((0,), (10**20_000,))  # too long for decimal digits: Python reads no more than 4,300
    assert from_facts(Combination, json.loads(json.dumps(as_facts(huge)))) == huge


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        (Interior, {"x": "1"}),
        (Interior, {"x": [1]}),
        (Interior, {"x": ["1e999999999"]}),
        (Interior, {"x": ["1/0"]}),
        (Interior, {"x": ["nan"]}),
        (Interior, {}),
        (Interior, ["1"]),
        (Interior, {"x": ["1"], "y": ["1"]}),
        (Combination, {"rows": [True], "weights": [1]}),
        (Combination, {"rows": [1.0], "weights": [1]}),
        (Combination, {"rows": ["1/2"], "weights": [1]}),
        (Combination, {"rows": None, "weights": [1]}),
        (Optimal, {"point": ["1"], "u": [], "v": [], "value": None}),
    ],
)
def test_what_is_no_certificate_is_refused(kind, facts):
    with pytest.raises(ValueError, match=r"must (be|have)"):
        from_facts(kind, facts)


@pytest.mark.parametrize("labels", [[0, 1, 1, 0], [0, 1, 1, 1]], ids=["xor", "or"])
def test_a_file_flipped_anywhere_is_refused_or_refuted_or_as_true_as_before(labels, tmp_path):
    path = tmp_path / "proof.json"
    answer = separability(CORNERS, labels)
    proofs = {"separable" if answer else "inseparable": answer}
    if answer:
        proofs["margin"] = gamma_affine(CORNERS, labels)
    documents.write(path, "separability", proofs, {"rows": 4})
    content = path.read_bytes()
    assert documents.read(path, "separability", KINDS).certificates == proofs
    rng = np.random.default_rng(0)
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            found = documents.read(path, "separability", KINDS).certificates
        except UnreadableCertificate:
            continue
        for proof in found.values():
            refuted = proof.refutation(CORNERS, labels)  # never an exception
            assert refuted is None or isinstance(refuted, str)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "proof.json"
    documents.write(path, "A x > 0", {"point": Interior.of([1.0, 0.5])}, {})
    content = path.read_bytes().rstrip()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(UnreadableCertificate):
            documents.read(path, "A x > 0", {"point": Interior})


def test_depth_is_no_way_to_crash(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(UnreadableCertificate):
        documents.read(path, "A x > 0", {"point": Interior})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"what": "\xff"}', "not a certificate: the byte 0xFF is not UTF-8"),
        (b"[" * 100_000, "not a certificate: lists and objects are nested too deeply"),
        (b"9" * 5000, "not a certificate: a number has thousands of digits"),
        (b'{"what": ', "not a certificate: the file is not JSON: Expecting value"),
    ],
    ids=["bytes", "depth", "digits", "end"],
)
def test_what_is_no_json_is_told_without_words_of_python(tmp_path, content, message):
    path = tmp_path / "proof.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableCertificate) as caught:
        documents.read(path, "separability", KINDS)
    assert caught.value.problem == message
