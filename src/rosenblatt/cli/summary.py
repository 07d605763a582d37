"""What is said about a model when it has learned."""

from __future__ import annotations

from typing import Any

from rosenblatt.cli.console import rounded, wrapped

_SHOWN_CLASSES = 8
_SUSPICIOUS = 20  # classes that may be numbers to predict


def summary(model: Any, place: str, top: int) -> tuple[dict[str, Any], str]:
    """(the facts, the text): what was learned, from how much, how well, and the `top` features of each class."""
    from rosenblatt.workflow import heaviest
    from rosenblatt.workflow.labels import spelled

    training, learner = model.training, model.learner
    history = training["history"]
    labels = [spelled(label) for label in getattr(learner, "classes_", [])]
    rows, passes = history[-1]["rows"], len(history)
    spoken: list[Any] = []
    if top and _is_linear(learner) and _has_words(model):
        spoken = [entry for entry in heaviest(model, top) if entry.weights]
    facts = {
        "model": place, "learner": type(learner).__name__, "classes": labels, "features": learner.n_features_in_,
        "rows": rows, "passes": passes, "stopped": training["stopped"], "skipped": training.get("skipped", 0),
        "history": history, "seconds": training["seconds"],
        "speaks_for": {entry.label: {weight.name: weight.value for weight in entry.weights} for entry in spoken},
    }  # fmt: skip
    if not labels:
        facts["history"] = [{key: value for key, value in entry.items() if key != "mistakes"} for entry in history]
    head = f"{place}: {type(learner).__name__}, {learner.n_features_in_:,} features"
    if labels:
        names = labels[:_SHOWN_CLASSES] + ["…"] * (len(labels) > _SHOWN_CLASSES)
        head = wrapped(f"{head}, {len(labels)} classes: ", names)
    lines = [
        head,
        f"{rows:,} rows, {passes} {'pass' if passes == 1 else 'passes'}, {training['seconds']:.1f} s "
        f"({rounded(rows * passes / max(training['seconds'], 1e-9))} rows/s)",
    ]
    if makes_mistakes(learner):
        first, last = history[0], history[-1]
        said = f"mistakes: {first['mistakes'] / rows:.2%} in the first pass"
        lines.append(said + (f", {last['mistakes'] / rows:.2%} in the last" if passes > 1 else ""))
    if history[-1]["error"] is not None:
        lines.append(f"error on the rows held out: {history[-1]['error']:.4f}")
    if training["stopped"] == "converged":
        lines.append("converged: the last pass changed nothing")
    if training.get("skipped"):
        lines.append(f"{training['skipped']:,} rows that could not be read were left out")
    lines += [
        wrapped(f"speaks for {entry.label}: ", [f"{weight.name} {weight.value:.3g}" for weight in entry.weights])
        for entry in spoken[:_SHOWN_CLASSES]
    ]
    if len(spoken) > _SHOWN_CLASSES:
        lines.append(f"({len(spoken) - _SHOWN_CLASSES:,} more classes)")
    return facts, "\n".join(lines)


def makes_mistakes(learner: Any) -> bool:
    """Whether each row is predicted before it is learned from, and is right or wrong."""
    from sklearn.base import is_regressor

    return hasattr(learner, "partial_fit") and not is_regressor(learner)


def numbers_as_labels(model: Any) -> int:
    """How many classes there are, if they look like numbers to predict: more than half as many as there are rows."""
    labels, history = getattr(model.learner, "classes_", None), model.training["history"]
    if labels is None or labels.dtype.kind not in "iuf" or not history:
        return 0
    return len(labels) if len(labels) >= _SUSPICIOUS and 2 * len(labels) > history[-1]["rows"] else 0


def _is_linear(learner: Any) -> bool:
    return (
        hasattr(learner, "coef_") and getattr(learner, "keep", "") != "vote" and getattr(learner, "multiclass", "") != "ovo"
    )


def _has_words(model: Any) -> bool:
    """Whether features have names that say something."""
    return model.reading.format == "table"
