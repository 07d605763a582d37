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

from rosenblatt.errors import InvalidData, InvalidDataType, UnsupportedOperation, shown
from rosenblatt.estimators.interface import Learner
from rosenblatt.estimators.parameters import Number, OneOf, check
from rosenblatt.structured.search.named_weights import Features, NamedWeights
from rosenblatt.structured.search.protocol import Input

State = Any  # whatever the problem's states are
Action = Any  # whatever can be compared by ==
Actions = Sequence[Action]


class Steps(Protocol):
    """A problem that is solved step by step."""

    def start(self, x: Input) -> State:
        """Return the state before the first action."""

    def moves(self, x: Input, state: State) -> Iterable[tuple[Action, State]]:
        """Return the actions that are possible in a state, each once, and the states they lead to."""

    def finished(self, x: Input, state: State) -> bool:
        """Return whether a path ends here."""

    def features(self, x: Input, state: State, action: Action) -> Features:
        """Return what the score of a step is a weighted sum of."""


class Prefix(NamedTuple):
    """The first actions of a path, as a chain that ends in the last of them."""

    score: float
    cost: float  # margin × actions that are not gold's
    state: State
    gold: bool  # whether all actions are gold's
    done: bool
    size: int
    action: Action = None
    before: Any = None  # the prefix without the last action

    def actions(self) -> tuple[Action, ...]:
        """The path so far."""
        found: list[Action] = []
        prefix = self
        while prefix.before is not None:
            found.append(prefix.action)
            prefix = prefix.before
        return tuple(reversed(found))


class GoldStep(NamedTuple):
    """What gold does in a step."""

    action: Actions  # one action, or none where gold has ended
    margin: float

    def has(self, action: Action) -> bool:
        """Whether it is this action."""
        return len(self.action) > 0 and bool(action == self.action[0])

    def cost(self, *actions: Action) -> float:
        """Return the margin, if this action, or none, is not gold's."""
        same = self.has(*actions) if actions else len(self.action) == 0
        return 0.0 if same else self.margin


class BeamStep(NamedTuple):
    """The search after so many steps: gold's prefix, the best prefix in the beam, and whether gold is still in it."""

    gold: Prefix
    best: Prefix
    held: bool

    @property
    def lead(self) -> float:
        """How far the best is ahead of gold, its cost included."""
        return self.best.score + self.best.cost - self.gold.score


def early_step(steps: Sequence[BeamStep]) -> BeamStep:
    """Where gold fell out of the beam (Collins and Roark 2004), or else the end; it always violates."""
    return next((step for step in steps if not step.held), steps[-1])


def max_violation_step(steps: Sequence[BeamStep]) -> BeamStep:
    """Where gold is farthest behind: the maximum violation; among equals the longest prefixes."""
    return max(reversed(steps), key=lambda step: step.lead)


def latest_step(steps: Sequence[BeamStep]) -> BeamStep:
    """The longest prefixes of which the wrong one is not behind."""
    sound = (step for step in reversed(steps) if not step.best.gold and step.lead >= 0.0)
    return next(sound, steps[-1])


def final_step(steps: Sequence[BeamStep]) -> BeamStep:
    """Whole paths, as an exact search would have it; where gold is ahead in the end, the learner refuses the update."""
    return steps[-1]


UPDATES: dict[str, Callable[[Sequence[BeamStep]], BeamStep]] = {
    "early": early_step,
    "max-violation": max_violation_step,
    "latest": latest_step,
    "standard": final_step,
}


class BeamSearch(Learner):
    """A search for `StructuredPerceptron` that keeps the `width` best prefixes after every step.

    Parameters
    ----------
    steps : object
        The problem: an object with the methods of `rosenblatt.structured.search.beam_search.Steps`.
    width : int, default=8
        How many prefixes are kept; 1 is greedy search. Train with the width you predict with.
    update : {"max-violation", "early", "latest", "standard"}, default="max-violation"
        Which prefixes are learned from when the path found is not gold: those where gold is farthest behind; those where it
        fell out of the beam; the longest of which the wrong one is not behind; or the whole paths.

    Examples
    --------
    Letters to sounds, one at a time, each by its letter and the next one:

    >>> from rosenblatt.structured import BeamSearch, StructuredPerceptron
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

    def __init__(self, steps: Steps, width: int = 8, update: str = "max-violation"):
        self.steps = steps
        self.width = width
        self.update = update

    # What a search offers

    def decode(self, x: Input, w: NamedWeights) -> tuple[Action, ...]:
        """Return the best path that the beam finds; among equals the one whose moves come first.

        Parameters
        ----------
        x : object
            An input.
        w : NamedWeights
            The weights.

        Returns
        -------
        tuple
            The actions of the path.
        """
        beam = [self._start(x)]
        while not all(prefix.done for prefix in beam):
            beam = self._step(x, w, beam)
        return beam[0].actions()

    def features(self, x: Input, path: Actions) -> dict[Hashable, float]:
        """Return the features of a path, or of a prefix of one: the sum over its steps.

        Parameters
        ----------
        x : object
            An input.
        path : sequence of actions

        Returns
        -------
        dict
        """
        state = self.steps.start(x)
        found: dict[Hashable, float] = {}
        for size, action in enumerate(path):
            for name, value in self.steps.features(x, state, action).items():
                found[name] = found.get(name, 0.0) + value
            state = self._next(x, state, action, size)
        return found

    def violation(self, x: Input, gold: Actions, w: NamedWeights, margin: float = 0.0) -> tuple[Actions, Actions] | None:
        """Return the prefixes to learn from, gold's and a wrong one.

        Parameters
        ----------
        x : object
            An input.
        gold : sequence of actions
            Its gold path.
        w : NamedWeights
            The weights.
        margin : float, default=0
            What every action that is not gold's at its place adds to the score of a prefix.

        Returns
        -------
        pair of sequences of actions, or None
            None if the beam finds gold, which a tie is not enough for.
        """
        check({"width": self.width, "update": self.update}, _ALLOWED, ())
        steps = self._steps(x, gold, w, margin)
        if steps[-1].best.gold:
            return None
        chosen = UPDATES[self.update](steps)
        right = gold if chosen.gold.size == len(gold) else gold[: chosen.gold.size]
        return right, chosen.best.actions()

    # Steps

    def _start(self, x: Input) -> Prefix:
        state = self.steps.start(x)
        return Prefix(0.0, 0.0, state, True, self.steps.finished(x, state), 0)

    def _steps(self, x: Input, gold: Actions, w: NamedWeights, margin: float) -> list[BeamStep]:
        """The search step by step, with gold followed beside it; early update needs no more once gold has fallen."""
        if isinstance(gold, str) or not hasattr(gold, "__len__"):
            raise InvalidDataType(f"a gold path must be a tuple or a list of actions; got {shown(gold)}")
        own = self._start(x)
        beam, steps = [own], [BeamStep(own, own, True)]
        for step in count():
            if all(prefix.done for prefix in [own, *beam]):
                break
            gold_step = GoldStep(gold[step : step + 1], margin)
            beam = self._step(x, w, beam, gold_step)
            own = self._extend_gold(x, w, own, gold_step)
            steps.append(BeamStep(own, beam[0], any(prefix.gold for prefix in beam)))
            if self.update == "early" and not steps[-1].held:
                return steps
        if own.size < len(gold):
            raise InvalidData(f"a gold path is finished after {own.size} of its {len(gold)} actions")
        return steps

    def _step(self, x: Input, w: NamedWeights, beam: list[Prefix], gold_step: GoldStep | None = None) -> list[Prefix]:
        """The best prefixes one step longer; what is done stays. Of equals, gold comes last."""
        longer = []
        for prefix in beam:
            if prefix.done:
                longer.append(prefix if gold_step is None else prefix._replace(cost=prefix.cost + gold_step.cost()))
            else:
                moves = self.steps.moves(x, prefix.state)
                longer += [self._extend(x, w, prefix, action, state, gold_step) for action, state in moves]
        if not longer:
            raise UnsupportedOperation(
                f"the beam of width {self.width} has run into states that are neither finished nor have moves"
            )
        longer.sort(key=lambda prefix: (-(prefix.score + prefix.cost), gold_step is not None and prefix.gold))
        return longer[: self.width]

    def _extend(
        self, x: Input, w: NamedWeights, prefix: Prefix, action: Action, state: State, gold_step: GoldStep | None
    ) -> Prefix:
        cost = 0.0 if gold_step is None else gold_step.cost(action)
        score = prefix.score + w.score(self.steps.features(x, prefix.state, action))
        right = prefix.gold and gold_step is not None and gold_step.has(action)
        done = self.steps.finished(x, state)
        return Prefix(score, prefix.cost + cost, state, right, done, prefix.size + 1, action, prefix)

    def _extend_gold(self, x: Input, w: NamedWeights, own: Prefix, gold_step: GoldStep) -> Prefix:
        """Gold's own prefix one step longer, unless it is done."""
        if own.done:
            return own
        if len(gold_step.action) == 0:
            raise InvalidData(f"a gold path of {own.size} actions ends before it is finished")
        action = gold_step.action[0]
        return self._extend(x, w, own, action, self._next(x, own.state, action, own.size), gold_step)

    def _next(self, x: Input, state: State, action: Action, size: int) -> State:
        for possible, following in self.steps.moves(x, state):
            if possible == action:
                return following
        raise InvalidData(f"action {size}, {shown(action)}, is not among the moves of its state")


_ALLOWED = {"width": Number(1, whole=True), "update": OneOf(tuple(UPDATES))}
