"""A linear probe: how much a linear classifier reads out of the embeddings of a frozen encoder. On a GPU, encoder and probe
work there and the embeddings never leave it; where there is no GPU, the same lines run on the CPU.

    python examples/linear_probe.py                      # embeddings of a random network, 100 classes
    python examples/linear_probe.py X.npy y.npy          # your own embeddings and their labels
    python examples/linear_probe.py --rows 1000000 --device cuda
"""

import argparse
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np

from rosenblatt import Perceptron
from rosenblatt.errors import GpuUnavailable, InvalidParameter, MissingDependency
from rosenblatt.gpu.card import find_card

PIXELS, HIDDEN, WIDTH = 256, 1024, 512  # of a picture, of the encoder, of an embedding
TEST = 0.2  # share of the rows to test on


def choose_device(wanted):
    """Return (device, its name or why it was chosen): a GPU if there is one and nothing else is wanted."""
    if wanted == "cpu":
        return "cpu", "as asked for"
    try:
        return wanted or "cuda", find_card(wanted or "cuda").describe().name
    except (GpuUnavailable, InvalidParameter, MissingDependency) as missing:
        if wanted:
            raise SystemExit(f"error: {missing}") from None
        return "cpu", missing.problem


def make_pictures(rows, classes, rng):
    """Return noisy pictures, a prototype for each class, and their labels."""
    labels = rng.integers(0, classes, rows)
    pictures = rng.standard_normal((rows, PIXELS), dtype=np.float32)
    pictures += 0.3 * rng.standard_normal((classes, PIXELS), dtype=np.float32)[labels]
    return pictures, labels


def encode(pictures, device, rng):
    """Return the embeddings of pictures by a network with random weights: a tensor of PyTorch or an array of CuPy on the
    GPU, an array of numpy on the CPU. A trained encoder stands in the same place."""
    first = rng.standard_normal((PIXELS, HIDDEN), dtype=np.float32) / PIXELS**0.5
    second = rng.standard_normal((HIDDEN, WIDTH), dtype=np.float32) / HIDDEN**0.5
    if device != "cpu" and find_spec("torch"):
        import torch

        with torch.no_grad():
            x, first, second = (torch.from_numpy(array).to(device) for array in (pictures, first, second))
            return torch.relu(x @ first) @ second
    if device != "cpu":
        import cupy

        pictures, first, second = (cupy.asarray(array) for array in (pictures, first, second))
    xp = np if device == "cpu" else cupy
    return xp.maximum(pictures @ first, 0) @ second


def probe(X, y, device, epochs):
    """Learn from the first rows, test on the last, and print how long it took. X is on the device already, or is sent."""
    cut = int(len(y) * (1 - TEST))
    learner = Perceptron(max_iter=epochs, tol=None, random_state=0, device=device)
    start = perf_counter()
    learner.fit(X[:cut], y[:cut])
    seconds = perf_counter() - start
    right = np.mean(learner.predict(X[cut:]) == y[cut:])
    print(
        f"{cut:,} × {X.shape[1]:,} embeddings, {len(learner.classes_)} classes, {learner.n_iter_} epochs: {seconds:.2f} s"
    )
    print(f"accuracy on {len(y) - cut:,} other rows: {right:.2%} (chance: {1 / len(learner.classes_):.2%})")
    return learner


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "files", nargs="*", help="embeddings and labels, as .npy; without them pictures are made and encoded"
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:1; by default a GPU if there is one")
    parser.add_argument("--rows", type=int, default=20_000, help="pictures to make")
    parser.add_argument("--classes", type=int, default=100, help="classes of the pictures")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--model", type=Path, help="file to save the probe in")
    options = parser.parse_args()
    if len(options.files) not in (0, 2):
        parser.error("give two files, embeddings and labels, or none")
    device, why = choose_device(options.device)
    print(f"learning on {device}: {why}")
    if options.files:
        X, y = (np.load(file, mmap_mode="r") for file in options.files)
        learner = probe(X, np.asarray(y), device, options.epochs)
    else:
        rng = np.random.default_rng(0)
        pictures, y = make_pictures(options.rows, options.classes, rng)
        learner = probe(encode(pictures, device, rng), y, device, options.epochs)
    if options.model is not None:
        learner.save(options.model)  # an ordinary model: its weights are in the machine's memory
        print(f"saved {options.model}")


if __name__ == "__main__":
    main()
