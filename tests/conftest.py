"""Each state of the sources has a kernel cache of its own: numba does not see edits in the callees of other files."""

import hashlib
import os
import signal
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "rosenblatt"
digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.rglob("*.py")))).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"rosenblatt-kernels-{digest}"))

# A background job of a shell starts with SIGINT ignored. Python then has no handler for it, here and in every process that
# a test starts, and a test of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402  numba reads the variable when it is imported
from hypothesis import HealthCheck, settings  # noqa: E402

# The first example of a kind compiles a kernel, so time says nothing.
settings.register_profile("ours", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")


def pytest_addoption(parser):
    parser.addoption("--data", default=None, help="the folder of real data that `reproduce` tests read")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--data") is None:
        missing = pytest.mark.skip(reason="needs --data FOLDER: make reproduce DATA=folder")
        for item in items:
            if "reproduce" in item.keywords:
                item.add_marker(missing)


@pytest.fixture(scope="session")
def data_folder(request):
    return Path(request.config.getoption("--data"))
