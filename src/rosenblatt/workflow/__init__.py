"""Train, predict and evaluate from files: what the command line does, as functions.

The shortest use:

    from rosenblatt.workflow import evaluate, reading_for, train

    model = train("mail.tsv", reading_for(["mail.tsv"], target=0, text=[1]))
    evaluate(model, "more.tsv").accuracy
    model.save("mail.model")
"""

from rosenblatt.data.formats import reading_for
from rosenblatt.workflow.calibration import calibrate
from rosenblatt.workflow.evaluation import cross_validate, evaluate, learning_curve
from rosenblatt.workflow.explanation import explain_row, top_features
from rosenblatt.workflow.learners import make_learner
from rosenblatt.workflow.model import FileModel
from rosenblatt.workflow.training import Options, train

# Earlier names of these functions.
cross_validated = cross_validate
heaviest = top_features
learner_named = make_learner
reasons = explain_row

__all__ = [
    "FileModel", "Options", "calibrate", "cross_validate", "cross_validated", "evaluate", "explain_row", "heaviest",
    "learner_named", "learning_curve", "make_learner", "reading_for", "reasons", "top_features", "train",
]  # fmt: skip
