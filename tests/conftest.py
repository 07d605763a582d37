"""What all tests need: no wait for ever, and examples that may compile."""

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A background job of a shell starts with SIGINT ignored. Python then has no handler for it, here and in every process that
# a test starts, and a test of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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


@pytest.fixture(autouse=True)
def _figures_are_closed():
    """Close the figures that a test leaves open, if it has drawn any: matplotlib warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def data_folder(request):
    return Path(request.config.getoption("--data"))


@pytest.fixture(scope="module")
def client():
    """A client of a cluster of two worker processes on this machine."""
    import distributed

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as here,
        distributed.Client(here) as found,
    ):
        yield found
