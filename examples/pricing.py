"""Compare four ways of setting prices for customers who only buy or refuse: ellipsoid, perceptron, ε-greedy, fixed price.
Prints a table for three kinds of customers and draws the regret for random ones.

    python examples/pricing.py pricing.png
"""

import argparse

import matplotlib

matplotlib.use("Agg")

from rosenblatt import plot
from rosenblatt.online.pricing import EllipsoidPricer, EpsilonGreedy, FixedPrice, PerceptronPricer, market, simulate

DIMENSION = 5
HORIZONS = [100, 300, 1_000, 3_000, 10_000, 30_000]
PRICERS = {
    "ellipsoid": lambda rounds: EllipsoidPricer(DIMENSION, horizon=rounds),
    "perceptron": lambda rounds: PerceptronPricer(DIMENSION),
    "ε-greedy": lambda rounds: EpsilonGreedy(DIMENSION),
    "fixed price 0.5": lambda rounds: FixedPrice(0.5),
}


def table(rounds=3_000):
    """Print what each pricer earns and loses, for each kind of customers."""
    print(f"{rounds:,} customers, {DIMENSION} features\n")
    print(f"{'customers':10} {'pricer':16} {'regret':>8} {'revenue':>9} {'of the value':>13} {'refusals':>9}")
    for kind in ("sphere", "basis", "drift"):
        customers = market(DIMENSION, rounds, kind)
        for name, make in PRICERS.items():
            sales = simulate(make(rounds), customers.contexts, customers.theta)
            share = sales.revenue / sales.value.sum()
            print(f"{kind:10} {name:16} {sales.regret.sum():8,.1f} {sales.revenue:9,.1f} {share:13.1%} {sales.misses:9,}")
        print()


def picture(path):
    """Draw the regret of each pricer; the ellipsoid depends on the horizon, so it is run once for each."""
    customers = market(DIMENSION, HORIZONS[-1])
    runs = {
        name: simulate(make(HORIZONS[-1]), customers.contexts, customers.theta)
        for name, make in PRICERS.items()
        if name != "ellipsoid"
    }
    horizons = [simulate(PRICERS["ellipsoid"](h), customers.contexts[:h], customers.theta) for h in HORIZONS]
    ax = plot.regret({"ellipsoid": horizons, **runs})
    ax.figure.savefig(path, dpi=110)
    growth = [f"{sales.regret.sum():.0f}" for sales in horizons]
    print(f"regret of the ellipsoid for {', '.join(f'{h:,}' for h in HORIZONS)} rounds: {', '.join(growth)}")
    print(f"saved {path}: regret against rounds")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="pricing.png", help="file to save the picture in")
    path = parser.parse_args().path
    table()
    picture(path)


if __name__ == "__main__":
    main()
