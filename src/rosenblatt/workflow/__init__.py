"""Files in, models out: what the command line does, as functions.

from rosenblatt.workflow import evaluate, reading_for, train

model = train("mail.tsv", reading_for(["mail.tsv"], target=0, text=[1]))
evaluate(model, "more.tsv").accuracy
model.save("mail.model")
"""

from rosenblatt.workflow.choosing import learner_named, reading_for
from rosenblatt.workflow.explaining import heaviest, reasons
from rosenblatt.workflow.judging import cross_validated, evaluate, learning_curve
from rosenblatt.workflow.model import FileModel
from rosenblatt.workflow.terms import Options
from rosenblatt.workflow.training import train

__all__ = [
    "FileModel",
    "Options",
    "cross_validated",
    "evaluate",
    "heaviest",
    "learner_named",
    "learning_curve",
    "reading_for",
    "reasons",
    "train",
]
