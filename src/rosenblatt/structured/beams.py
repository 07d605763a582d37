"""A path is found step by step, with only the best few prefixes kept on the way: beam search, and how to learn from it.

A problem offers `start(x)`, a state; `moves(x, state)`, pairs of an action and the state it leads to; `finished(x, state)`;
and `features(x, state, action)`, what a step adds to the features of its path. A path is the tuple of its actions, and so
is gold. A beam may lose gold on the way though gold would have won in the end; an update on whole paths then takes from
gold what it was right about, and no theorem says how often. An update is sound if the wrong prefix scores at least what
gold's prefix scores after as many steps, and `UPDATES` are ways to choose the step. With γ the margin of gold over all such
prefixes and R the length of their differences, there are at most R²/γ² updates, in any of the ways (Huang, Fayong and Guo
2012); what is not sound, the learner refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

from sklearn.base import BaseEstimator

from rosenblatt.estimators.parameters import Number, OneOf, check
from rosenblatt.structured.named import Features, NamedWeights


class Steps(Protocol):
    """A problem that is solved step by step."""

    def start(self, x: Any) -> Any:
        """The state before the first action."""

    def moves(self, x: Any, state: Any) -> Iterable[tuple[Any, Any]]:
        """The actions that are possible in a state, each once, and the states they lead to."""

    def finished(self, x: Any, state: Any) -> bool:
        """Whether a path ends here."""

    def features(self, x: Any, state: Any, action: Any) -> Features:
        """What the score of a step is a weighted sum of."""


class Prefix(NamedTuple):
    """The first actions of a path, as a chain that ends in the last of them."""

    score: float
    cost: float  # margin × actions that are not gold's
    state: Any
    gold: bool  # whether all actions are gold's
    done: bool
    size: int
    action: Any = None
    before: Any = None  # the prefix without the last action

    def actions(self) -> tuple[Any, ...]:
        """The path so far."""
        found: list[Any] = []
        prefix = self
        while prefix.before is not None:
            found.append(prefix.action)
            prefix = prefix.before
        return tuple(reversed(found))


class Sought(NamedTuple):
    """What gold does in a step."""

    action: Sequence[Any]  # one action, or none where gold has ended
    margin: float

    def has(self, action: Any) -> bool:
        """Whether it is this action."""
        return len(self.action) > 0 and bool(action == self.action[0])

    def cost(self, *taken: Any) -> float:
        """The margin, if an action, or none, was taken that is not gold's."""
        same = self.has(*taken) if taken else len(self.action) == 0
        return 0.0 if same else self.margin


class Moment(NamedTuple):
    """The search after so many steps: gold's prefix, the best prefix in the beam, and whether gold is still in it."""

    gold: Prefix
    best: Prefix
    held: bool

    @property
    def lead(self) -> float:
        """How far the best is ahead of gold, its cost included."""
        return self.best.score + self.best.cost - self.gold.score


def early(moments: Sequence[Moment]) -> Moment:
    """Where gold fell out of the beam (Collins and Roark 2004), or else the end; it always violates."""
    return next((moment for moment in moments if not moment.held), moments[-1])


def widest(moments: Sequence[Moment]) -> Moment:
    """Where gold is farthest behind: the maximum violation; among equals the longest prefixes."""
    return max(reversed(moments), key=lambda moment: moment.lead)


def latest(moments: Sequence[Moment]) -> Moment:
    """The longest prefixes of which the wrong one is not behind."""
    sound = (moment for moment in reversed(moments) if not moment.best.gold and moment.lead >= 0.0)
    return next(sound, moments[-1])


def final(moments: Sequence[Moment]) -> Moment:
    """Whole paths, as an exact search would have it; where gold is ahead in the end, the learner refuses the update."""
    return moments[-1]


UPDATES: dict[str, Callable[[Sequence[Moment]], Moment]] = {
    "early": early,
    "max-violation": widest,
    "latest": latest,
    "standard": final,
}


class BeamSearch(BaseEstimator):
    """A search for `StructuredPerceptron` that keeps the `width` best prefixes after every step.

    Parameters
    ----------
    steps : object
        The problem, as the head of this file describes it.
    width : int, default=8
        How many prefixes are kept; 1 is greedy search. Train with the width you predict with.
    update : {"max-violation", "early", "latest", "standard"}, default="max-violation"
        Which prefixes are learned from when the path found is not gold: those where gold is farthest behind; those where it
        fell out of the beam; the longest of which the wrong one is not behind; or the whole paths.

    Examples
    --------
    Letters to sounds, one at a time, each by its letter and the next one:

    >>> from rosenblatt.structured.beams import BeamSearch
    >>> from rosenblatt.structured.perceptron import StructuredPerceptron
    >>> class Spell:
    ...     def start(self, word):
    ...         return ()
    ...     def moves(self, word, said):
    ...         return [(sound, (*said, sound)) for sound in "ksaeit"]
    ...     def finished(self, word, said):
    ...         return len(said) == len(word)
    ...     def features(self, word, said, sound):
    ...         i = len(said)
    ...         return {(word[i], sound): 1, (word[i : i + 2], sound): 1}
    >>> model = StructuredPerceptron(BeamSearch(Spell(), width=4))
    >>> _ = model.fit(["cat", "cite", "ice"], [tuple("kat"), tuple("site"), tuple("ise")])
    >>> model.predict(["tic", "ace"])
    [('t', 'i', 'k'), ('a', 's', 'e')]
    """

    def __init__(self, steps: Any, width: int = 8, update: str = "max-violation"):
        self.steps = steps
        self.width = width
        self.update = update

    # What a search offers

    def decode(self, x: Any, w: NamedWeights) -> tuple[Any, ...]:
        """The actions of the best path that the beam finds; among equals the one whose moves come first."""
        beam = [self._start(x)]
        while not all(prefix.done for prefix in beam):
            beam = self._step(x, w, beam)
        return beam[0].actions()

    def features(self, x: Any, path: Sequence[Any]) -> dict[Hashable, float]:
        """The features of a path, or of a prefix of one: the sum over its steps."""
        state = self.steps.start(x)
        found: dict[Hashable, float] = {}
        for size, action in enumerate(path):
            for name, value in self.steps.features(x, state, action).items():
                found[name] = found.get(name, 0.0) + value
            state = self._next(x, state, action, size)
        return found

    def violation(self, x: Any, gold: Sequence[Any], w: NamedWeights, margin: float = 0.0) -> tuple[Any, Any] | None:
        """The prefixes to learn from, gold's and a wrong one; None if the beam finds gold, which a tie is not enough for.

        With a margin, every action that is not gold's at its place adds it to the score of a prefix.
        """
        check({"width": self.width, "update": self.update}, _ALLOWED, ())
        moments = self._moments(x, gold, w, margin)
        if moments[-1].best.gold:
            return None
        chosen = UPDATES[self.update](moments)
        right = gold if chosen.gold.size == len(gold) else gold[: chosen.gold.size]
        return right, chosen.best.actions()

    # Steps

    def _start(self, x: Any) -> Prefix:
        state = self.steps.start(x)
        return Prefix(0.0, 0.0, state, True, self.steps.finished(x, state), 0)

    def _moments(self, x: Any, gold: Sequence[Any], w: NamedWeights, margin: float) -> list[Moment]:
        """The search step by step, with gold followed beside it; early update needs no more once gold has fallen."""
        if isinstance(gold, str) or not hasattr(gold, "__len__"):
            raise TypeError(f"a gold path must be a tuple or a list of actions; got {gold!r}")
        own = self._start(x)
        beam, moments = [own], [Moment(own, own, True)]
        for step in count():
            if all(prefix.done for prefix in [own, *beam]):
                break
            sought = Sought(gold[step : step + 1], margin)
            beam = self._step(x, w, beam, sought)
            own = self._followed(x, w, own, sought)
            moments.append(Moment(own, beam[0], any(prefix.gold for prefix in beam)))
            if self.update == "early" and not moments[-1].held:
                return moments
        if own.size < len(gold):
            raise ValueError(f"a gold path is finished after {own.size} of its {len(gold)} actions")
        return moments

    def _step(self, x: Any, w: NamedWeights, beam: list[Prefix], sought: Sought | None = None) -> list[Prefix]:
        """The best prefixes one step longer; what is done stays. Of equals, gold comes last."""
        longer = []
        for prefix in beam:
            if prefix.done:
                longer.append(prefix if sought is None else prefix._replace(cost=prefix.cost + sought.cost()))
            else:
                moves = self.steps.moves(x, prefix.state)
                longer += [self._longer(x, w, prefix, action, state, sought) for action, state in moves]
        if not longer:
            raise ValueError(f"the beam of width {self.width} has run into states that are neither finished nor have moves")
        longer.sort(key=lambda prefix: (-(prefix.score + prefix.cost), sought is not None and prefix.gold))
        return longer[: self.width]

    def _longer(self, x: Any, w: NamedWeights, prefix: Prefix, action: Any, state: Any, sought: Sought | None) -> Prefix:
        cost = 0.0 if sought is None else sought.cost(action)
        score = prefix.score + w.score(self.steps.features(x, prefix.state, action))
        right = prefix.gold and sought is not None and sought.has(action)
        done = self.steps.finished(x, state)
        return Prefix(score, prefix.cost + cost, state, right, done, prefix.size + 1, action, prefix)

    def _followed(self, x: Any, w: NamedWeights, own: Prefix, sought: Sought) -> Prefix:
        """Gold's own prefix one step longer, unless it is done."""
        if own.done:
            return own
        if len(sought.action) == 0:
            raise ValueError(f"a gold path of {own.size} actions ends before it is finished")
        action = sought.action[0]
        return self._longer(x, w, own, action, self._next(x, own.state, action, own.size), sought)

    def _next(self, x: Any, state: Any, action: Any, size: int) -> Any:
        for possible, following in self.steps.moves(x, state):
            if possible == action:
                return following
        raise ValueError(f"action {size}, {action!r}, is not among the moves of its state")


_ALLOWED = {"width": Number(1, whole=True), "update": OneOf(tuple(UPDATES))}
