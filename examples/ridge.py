"""Compare three ways to least squares: the delta rule in epochs, LinearRegression at once, and Ridge with a penalty.

The notes of Waterloo's CS489/698 minimise ½‖Xw − y‖² + λ‖w‖². Setting the gradient XᵀXw − Xᵀy + 2λw to zero gives
w = (XᵀX + 2λI)⁻¹Xᵀy: with the ½ on one term only, scikit-learn's `alpha` is 2λ. Here X has an example in each row. The
intercept is not penalised, and columns are standardised within each fold of a cross-validation.

    python examples/ridge.py [picture.png]
"""

import sys

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rosenblatt import DeltaRuleRegressor

PENALTIES = [0.0, 0.5, 5.0, 50.0, 500.0]
EPOCHS = [1, 10, 100, 1000]


def closed_form(X, y, penalty):
    """Return (coef, intercept) that minimise ½‖Xw + b − y‖² + λ‖w‖²: centring takes the intercept out of the penalty."""
    centre, level = X.mean(axis=0), y.mean()
    inner = (X - centre).T @ (X - centre) + 2 * penalty * np.eye(X.shape[1])
    coef = np.linalg.solve(inner, (X - centre).T @ (y - level))
    return coef, level - centre @ coef


def leave_one_out_errors(X, y, penalty):
    """Return the error at each row of the model fitted without it, from one fit: e_i/(1 − h_ii).

    H takes y to the fitted values: 1/n for the intercept, and the penalised projection on the centred columns.
    """
    centred = X - X.mean(axis=0)
    inner = centred.T @ centred + 2 * penalty * np.eye(X.shape[1])
    leverage = 1 / len(X) + np.einsum("ij,ji->i", centred, np.linalg.solve(inner, centred.T))
    coef, intercept = closed_form(X, y, penalty)
    return (y - X @ coef - intercept) / (1 - leverage)


def leave_one_out_errors_by_refitting(X, y, penalty):
    """Return the same errors, from one fit for each row."""
    errors = np.empty(len(X))
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        coef, intercept = closed_form(X[rest], y[rest], penalty)
        errors[i] = y[i] - X[i] @ coef - intercept
    return errors


def root_mean_square(errors):
    return float(np.sqrt(np.mean(errors**2)))


def print_ridge(X, y):
    """Print a line for each λ."""
    folds = KFold(10, shuffle=True, random_state=0)
    print(f"{'λ':>6} {'alpha=2λ':>8} {'‖w‖':>8} {'R²':>6} {'left out':>9} {'refitted':>9} {'10 folds, R²':>13}")
    for penalty in PENALTIES:
        model = Ridge(alpha=2 * penalty).fit(X, y)
        coef, intercept = closed_form(X, y, penalty)
        assert np.allclose(model.coef_, coef)
        assert np.allclose(model.intercept_, intercept)
        fast, slow = leave_one_out_errors(X, y, penalty), leave_one_out_errors_by_refitting(X, y, penalty)
        assert np.allclose(fast, slow)
        scores = cross_val_score(make_pipeline(StandardScaler(), Ridge(alpha=2 * penalty)), X, y, cv=folds)
        print(
            f"{penalty:6g} {2 * penalty:8g} {np.linalg.norm(coef):8.2f} {model.score(X, y):6.3f} "
            f"{root_mean_square(fast):9.3f} {root_mean_square(slow):9.3f} {scores.mean():13.3f}"
        )


def print_delta_rule(X, y):
    """Print a line for each number k of epochs of the delta rule, which is like a penalty of 2λ ≈ 1/(ηk)."""
    print(f"\n{'epochs':>6} {'1/(ηk)':>8} {'‖w‖':>8} {'R²':>6} {'from least squares':>19}")
    exact = LinearRegression().fit(X, y)
    for epochs in EPOCHS:
        rule = DeltaRuleRegressor(batch="full", max_iter=epochs, tol=None).fit(X, y)
        distance = np.linalg.norm(np.append(rule.coef_ - exact.coef_, rule.intercept_ - exact.intercept_))
        print(
            f"{epochs:6} {1 / (rule.rate_ * epochs):8.3g} {np.linalg.norm(rule.coef_):8.2f} {rule.score(X, y):6.3f} "
            f"{distance:19.2g}"
        )
    print(f"{'all':>6} {'':8} {np.linalg.norm(exact.coef_):8.2f} {exact.score(X, y):6.3f} {'LinearRegression':>19}")


def draw(path, X, y, names):
    """Draw the weights against λ, and against the epochs of the delta rule."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
    penalties = np.geomspace(1e-2, 1e4, 60)
    left.semilogx(penalties, [closed_form(X, y, penalty)[0] for penalty in penalties])
    left.set(xlabel="λ", ylabel="weights", title="Ridge: a penalty shrinks the weights")
    steps = np.unique(np.geomspace(1, 3000, 60).astype(int))
    path_of = [DeltaRuleRegressor(batch="full", max_iter=int(k), tol=None).fit(X, y).coef_ for k in steps]
    right.semilogx(steps, path_of)
    right.invert_xaxis()
    right.set(xlabel="epochs of the delta rule", title="So does stopping early")
    right.legend(names, fontsize="small", loc="lower right")
    figure.savefig(path, dpi=110)
    print(f"\nsaved {path}: the weights against λ and against epochs")


def main(picture=None):
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    print("Diabetes: 442 patients, 10 measurements, how far the disease has gone a year later\n")
    print_ridge(X, y)
    print_delta_rule(X, y)
    if picture:
        draw(picture, X, y, load_diabetes().feature_names)


if __name__ == "__main__":
    main(*sys.argv[1:])
