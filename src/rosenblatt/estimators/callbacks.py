"""scikit-learn's callbacks, where the installed version has them (1.9 and later); otherwise nothing, at no cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def with_callbacks(method: Callable) -> Callable:
    """Decorate a method so that the callbacks of its estimator, if it has any, are torn down when it returns or fails."""

    @wraps(method)
    def managed(estimator: Any, *args: Any, **options: Any) -> Any:
        if not getattr(estimator, "_skl_callbacks", None):
            return method(estimator, *args, **options)
        import sklearn.callback

        return sklearn.callback.with_callbacks(method)(estimator, *args, **options)

    return managed


class Hooks:
    """Calls the callbacks of an estimator around its fit and after each epoch."""

    def __init__(self, estimator: Any, X: object, y: object, epochs: int, learned: Callable[[], dict[str, object]]):
        self.known = {"estimator": estimator, "X": X, "y": y, "reconstruction_attributes": learned}
        self.fit = None
        if getattr(estimator, "_skl_callbacks", None):
            self.fit = estimator._init_callback_context(max_subtasks=epochs)
            self.fit.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def epoch(self) -> bool:
        """Tell callbacks that an epoch is over.

        Returns
        -------
        stop : bool
            Whether a callback asks to stop.
        """
        if self.fit is None:
            return False
        task = self.fit.subcontext(task_name="epoch")
        task.call_on_fit_task_begin(estimator=self.known["estimator"], X=self.known["X"], y=self.known["y"])
        return bool(task.call_on_fit_task_end(**self.known))

    def done(self) -> None:
        """Tell that the fit is over."""
        if self.fit is not None:
            self.fit.call_on_fit_task_end(**self.known)
