"""Tools to test learners: laws, reference implementations, and strategies that draw data.

- `laws`: behavioural checks for any scikit-learn classifier: `laws.check(MyLearner())`.
- `compare`: a student's perceptron beside the reference; it names the first update that differs and the likely reason.
- `reference`: the perceptron as a textbook writes it, alone and in shards, in plain numpy, to compare with.
- `structured`: the same for structured learners, by brute force over all structures.
- `rational`: linear separability decided with fractions.
- `strategies`: data for tests with hypothesis.
"""

from rosenblatt.testing.comparison import Comparison, compare
from rosenblatt.testing.mistakes import Mistake

__all__ = ["Comparison", "Mistake", "compare"]
