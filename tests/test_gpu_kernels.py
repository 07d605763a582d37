"""The kernels of a GPU compile without one, for every rule and every kind of card, and their parts fit a multiprocessor."""

import ctypes
import re
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt import rules
from rosenblatt.gpu import layouts
from rosenblatt.gpu.sources import source_of
from rosenblatt.rules import step

H200 = (132, 232_448, 16)  # multiprocessors, bytes of memory that a thread block may ask for, the largest cluster
CARDS = {"sm_90": H200, "sm_120": (170, 101_376, 8), "sm_80": (108, 166_912, 1), "sm_75": (40, 65_536, 1)}


class Relaxation(NamedTuple):
    """A rule of a user."""

    strength: float


@step.register
def _(rule: Relaxation, m, length, k, positive):
    return rule.strength * max(0.0, 1.0 - m) / length if length > 0.0 else 0.0


@pytest.fixture(scope="module")
def nvrtc():
    """The compiler of CUDA C++, which needs no GPU."""
    found = find_spec("nvidia")
    places = [] if found is None else found.submodule_search_locations or []
    files = [path for place in places for path in sorted(Path(place).glob("*/lib/libnvrtc.so.[0-9]*"))]
    if not files:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    return ctypes.CDLL(str(files[0]))


def compile_cuda(nvrtc, source, architecture):
    """Compile a source to machine code; return what the compiler had to say."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"--fmad=false"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    assert not failed, log.value.decode()
    return log.value.decode()


@pytest.mark.parametrize("rule", [*rules.KINDS.values(), Relaxation], ids=lambda rule: rule.__name__)
def test_every_rule_compiles(nvrtc, rule):
    shape = layouts.shape_for(3, 65, "float32", True, *H200)
    for name, constants in (
        ("columns", layouts.columns_constants(shape, False, True)),
        ("panels", layouts.panels_constants(layouts.PANEL, 16)),
    ):
        assert compile_cuda(nvrtc, source_of(name, "float32", rule, constants), "sm_90") == ""


@pytest.mark.parametrize("architecture", CARDS)
@pytest.mark.parametrize("real", ["float32", "float64"])
def test_every_card_is_compiled_for(nvrtc, architecture, real):
    for vectors, features in ((1, 1025), (100, 1025), (1000, 129)):
        if (shape := layouts.shape_for(vectors, features, real, False, *CARDS[architecture])) is not None:
            constants = layouts.columns_constants(shape, vectors == 1, False)
            assert compile_cuda(nvrtc, source_of("columns", real, rules.PA1, constants), architecture) == ""
    for warps in (0, 2):
        constants = layouts.panels_constants(64, warps)
        assert compile_cuda(nvrtc, source_of("panels", real, rules.PA1, constants), architecture) == ""
    assert compile_cuda(nvrtc, source_of("pack", real), architecture) == ""


@pytest.mark.parametrize("real", ["float32", "float64"])
def test_gram_matrices_of_every_block_compile(nvrtc, real):
    for block in (8, 16, 32, 64, 128):
        assert compile_cuda(nvrtc, source_of("gram", real, None, layouts.gram_constants(block)), "sm_90") == ""


def test_errors_of_the_compiler_are_shown(nvrtc):
    with pytest.raises(AssertionError, match=r"identifier .*is undefined"):
        compile_cuda(nvrtc, source_of("columns", "float32", rules.PA1, {}), "sm_90")


@given(
    st.integers(1, 2000),
    st.integers(2, 30_000),
    st.sampled_from(["float32", "float64"]),
    st.booleans(),
    st.sampled_from(sorted(CARDS)),
)
def test_shapes_fit_the_card(vectors, features, real, averaged, name):
    _, shared_bytes, largest = CARDS[name]
    shape = layouts.shape_for(vectors, features, real, averaged, *CARDS[name])
    if shape is None:  # then even the smallest blocks of whole rows are too large for a cluster
        assert features > (500 if largest > 1 else 100)
        return
    size = 4 if real == "float32" else 8
    units = 16 // size
    assert shape.shared_bytes < shared_bytes
    assert shape.cluster <= largest
    assert shape.cluster * shape.width >= features
    assert shape.width % units == 0
    assert shape.width // units % 2 == 1
    assert shape.block * -(-layouts.MULTIPLIERS // shape.block) == layouts.MULTIPLIERS
    layout = layouts.columns_layout(shape, real, vectors, 100_000)
    assert layout.chunk % layouts.GROUP == 0
    assert layout.chunk * layout.row_bytes <= 1 << 29 or layout.chunk == layouts.GROUP


@pytest.mark.parametrize("name", CARDS)
def test_clusters_are_as_large_as_a_card_allows(name):
    number = int(name.removeprefix("sm_"))
    assert layouts.largest_cluster(divmod(number, 10), CARDS[name][1]) == CARDS[name][2]


@given(st.integers(1, 10**6), st.integers(4, 10**6), st.sampled_from([1, 100, 512, 4096]))
def test_chunks_are_whole_panels(rows, row_bytes, together):
    chunk = layouts.chunk_rows(rows, row_bytes, together)
    assert chunk % together == 0
    assert chunk >= min(rows, together)
    assert chunk * row_bytes <= 1 << 28 or chunk == together


def test_constants_of_kernels_are_those_of_python():
    """What both sides must agree on stands in both, with the same value."""
    folder = Path(layouts.__file__).parent / "kernels"
    columns, prelude = (folder / "columns.cu").read_text(), (folder / "prelude.cu").read_text()
    assert int(re.search(r"#define STAGES (\d+)", columns)[1]) == layouts._STAGES
    fields = re.search(r"struct Example \{.*?\};", prelude, re.S)[0]
    assert 4 * len(re.findall(r"^    int ", fields, re.M)) + 8 * len(re.findall(r"^    double ", fields, re.M)) == (
        layouts.EXAMPLE_BYTES
    )
    for block in (8, 16, 32, 64, 128):  # place_in_gram of prelude.cu is one to one
        places = {
            32 * g * block - 512 * g * (g - 1) + (i - 32 * g) * (block - 32 * g) + j - 32 * g
            for i, j in product(range(block), repeat=2)
            if j >= 32 * (g := i // 32)
        }
        assert places == set(range(layouts.gram_numbers(block)))
