"""Workers and schedulers are killed; the model has the same bytes, or the error names the checkpoint to resume from."""

import os
import signal
import subprocess
import sys
import time

import distributed
import numpy as np
import pytest

from rosenblatt import Perceptron, cluster, errors

pytestmark = pytest.mark.timeout(300)

ESTIMATOR = Perceptron(keep="average", max_iter=5, tol=None)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.integers(-3, 4, (400, 8)).astype(float)
    return X, np.where(X @ rng.normal(size=8) + rng.normal(size=400) > 0, "yes", "no")


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    """The file of the model that a cluster without faults learns."""
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        return saved(cluster.fit(ESTIMATOR, *data, client=client, shards=6), tmp_path_factory.mktemp("expected"))


def saved(model, folder):
    model.save(folder / "model")
    return (folder / "model").read_bytes()


class Killer:
    """Kills a worker process when a number of shards of an epoch are done."""

    def __init__(self, client, epoch, done, all_of_them=False):
        self.client, self.epoch, self.done, self.all_of_them = client, epoch, done, all_of_them
        self.killed = []
        client.wait_for_workers(2, timeout=60)  # one that the test before killed may not be back yet

    def __call__(self, progress):
        if not self.killed and (progress.epoch, progress.done) >= (self.epoch, self.done):
            pids = sorted(self.client.run(os.getpid).values())
            self.killed = pids if self.all_of_them else pids[:1]
            for pid in self.killed:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("epoch", "done"), [(0, 1), (1, 1), (3, 2), (5, 5)])
def test_a_worker_is_killed_in_an_epoch(client, data, expected, tmp_path, epoch, done):
    killer = Killer(client, epoch, done)
    model = cluster.fit(ESTIMATOR, *data, client=client, shards=6, watch=killer)
    assert killer.killed
    assert saved(model, tmp_path) == expected


def test_all_workers_are_killed_and_all_data_lost(client, data, expected, tmp_path):
    killer = Killer(client, 3, 1, all_of_them=True)
    model = cluster.fit(ESTIMATOR, *data, client=client, shards=6, watch=killer)
    assert len(killer.killed) == 2
    assert saved(model, tmp_path) == expected


def test_a_worker_comes_late(data, expected, tmp_path):
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as here,
        distributed.Client(here) as client,
    ):

        def watch(progress):
            if progress.epoch == 2 and progress.done == 1:
                here.scale(2)

        model = cluster.fit(ESTIMATOR, *data, client=client, shards=6, watch=watch)
    assert saved(model, tmp_path) == expected


def start(module, *arguments):
    command = [sys.executable, "-m", f"distributed.cli.dask_{module}", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Machines:
    """A scheduler and a worker, as processes of their own."""

    def __init__(self, folder):
        folder.mkdir()
        self.file = folder / "scheduler.json"
        common = ["--scheduler-file", str(self.file)]
        self.scheduler = start("scheduler", *common, "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        end = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < end:
            time.sleep(0.1)
        self.worker = start("worker", *common, "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder))

    def __enter__(self):
        self.client = distributed.Client(scheduler_file=str(self.file), timeout=60)
        return self

    def __exit__(self, *failure):
        for process in (self.scheduler, self.worker):
            process.kill()
            process.wait(60)
        self.client.close(timeout=2)


def test_a_cluster_whose_workers_stay_away(data, monkeypatch):
    monkeypatch.setattr("rosenblatt.cluster.dask_shards._PATIENCE", 2)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
        ) as here,
        distributed.Client(here) as client,
    ):

        def watch(progress):
            if progress.epoch == 2:
                here.scale(0)

        with pytest.raises(errors.ClusterUnavailable, match="has no worker"):
            cluster.fit(ESTIMATOR, *data, client=client, shards=6, watch=watch)


def test_the_scheduler_is_killed_and_training_resumes(data, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("rosenblatt.cluster.dask_shards._PATIENCE", 3)
    place = tmp_path / "run.checkpoint"
    fit = {"shards": 6, "checkpoint": place}
    with Machines(tmp_path / "first") as machines:

        def watch(progress):
            if (progress.epoch, progress.done) >= (3, 1):
                machines.scheduler.kill()

        with pytest.raises(errors.ClusterUnavailable) as failure:
            cluster.fit(ESTIMATOR, *data, client=machines.client, watch=watch, **fit)
    assert str(place) in failure.value.hint
    assert "2 epochs" in failure.value.hint
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        model = cluster.fit(ESTIMATOR, *data, client=client, resume=True, **fit)
    assert saved(model, tmp_path) == expected
