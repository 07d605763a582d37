"""A page where one clicks points and watches learners of the family learn them, update by update.

`recording` runs a learner row by row and keeps its states, `forms` says which learners there are and what they can be asked
for, `points` reads and offers points, `app` has the routes, `server` listens; `page` is what the browser gets, with the
scripts of `rosenblatt.theory`'s page of a run. `rosenblatt lab` starts it.
"""

from rosenblatt.lab.forms import LEARNERS
from rosenblatt.lab.recording import Job, Recording, record

__all__ = ["LEARNERS", "Job", "Recording", "record"]
