"""The connection to a cluster: the current Dask client, a scheduler at an address, or worker processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

from rosenblatt import __version__
from rosenblatt.data.parsing.parallel import cores
from rosenblatt.errors import ClusterUnavailable

_PATIENCE = 30  # seconds until a scheduler must have answered


@contextmanager
def connect(client: Client | str | None, workers: int | None = None) -> Iterator[Client]:
    """Connect to a cluster for the time of a block.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, which stays open; the address of a scheduler; "local" for worker processes on this machine, with one
        thread each; None for the current Dask client if there is one, else "local".
    workers : int, optional
        The number of local worker processes; by default one for each core.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ClusterUnavailable
        If no scheduler answers, or if workers have no rosenblatt, or another version of it.

    Examples
    --------
    A client that is open already is used as it is; here Dask runs in this process.

    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as mine:
    ...     with connect(mine) as client:
    ...         client is mine, len(client.scheduler_info()["workers"])
    (True, 1)
    """
    if client is None:
        try:
            client = Client.current()
        except ValueError:  # there is none
            client = "local"
    if isinstance(client, Client):
        _check_workers(client)
        yield client
    elif client == "local":
        here = LocalCluster(
            n_workers=workers or cores(), threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        )  # fmt: skip
        with here, Client(here) as own:
            yield own
    else:
        try:
            own = Client(client, timeout=_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as failure:  # TypeError: tls:// without certificates
            raise ClusterUnavailable(
                f"no scheduler answers at {client}: {failure}", client, "start one with: dask scheduler"
            ) from failure
        with own:
            _check_workers(own)
            yield own


def _check_workers(client: Client) -> None:
    """Refuse a cluster without workers, or one whose workers cannot do the same as this process."""
    address = str(client.scheduler.address) if client.scheduler is not None else "?"
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
        versions = {"scheduler": _scheduler_version(client), **client.run(version, on_error="return")}
    except (OSError, TimeoutError) as failure:
        raise ClusterUnavailable(
            f"the cluster at {address} has no workers", address, f"start one with: dask worker {address}"
        ) from failure
    for place, found in versions.items():
        if found != __version__ and not isinstance(found, OSError):  # a worker that has gone in the meantime
            who = "the scheduler" if place == "scheduler" else f"the worker at {place}"
            has = f"rosenblatt {found}" if isinstance(found, str) else f"no rosenblatt ({found!r})"
            raise ClusterUnavailable(
                f"{who} has {has}, and this process has rosenblatt {__version__}",
                address,
                "install the same version on all machines, the scheduler's too",
            )


def _scheduler_version(client: Client) -> object:
    """The version that the scheduler has, or the error that it has instead: it reads tasks, and must know their names."""
    try:
        return client.run_on_scheduler(version)
    except (ImportError, AttributeError) as missing:
        return missing


def version() -> str:
    """Return the version of this library that a process has."""
    return __version__


def dashboard(client: Client) -> str:
    """Return the address of the page on which Dask shows what the workers do."""
    return str(client.dashboard_link or "")
