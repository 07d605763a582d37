"""A path imports what it needs. scikit-learn, pandas and the theorems take longer to import than most commands run."""

import subprocess
import sys

import pytest

HEAVY = {"hypothesis", "joblib", "matplotlib", "pandas", "rosenblatt.theory", "scipy.stats", "sklearn"}
COMPILED = {"numba", "numpy", "pyarrow", "scipy"}

SVM = "-1 1:1 3:2\n1 2:1 3:1\n" * 4
MAILS = "label,text\nspam,win money now\nham,see you soon\n" * 4
PEOPLE = "age,colour,label\n30,red,yes\n20,blue,no\n35,,yes\n" * 4
TREES = """1\tdogs\tdog\tNOUN\tNN\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVB\t_\t0\troot\t_\t_

1\tcats\tcat\tNOUN\tNN\t_\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\tVB\t_\t0\troot\t_\t_

"""
STEPS = {  # statements, which run one after the other in one process, and what none of them may import
    "the library": (["import rosenblatt", "dir(rosenblatt)"], HEAVY | COMPILED),
    "a stream": (
        [
            "from rosenblatt.online import OnlinePerceptron, progressive",
            "model = OnlinePerceptron(hashing=64)",
            "progressive(model, [({'a': 1.0}, 'x'), ({'b': 1.0}, 'y'), ({'a': 2.0, 'c': 1.0}, 'x')])",
            "model.save('stream.model')",
            "import rosenblatt; rosenblatt.load('stream.model').set_params().predict_one({'a': 1.0})",
            "repr(model), model.get_params(), model.clone()",
        ],
        HEAVY | {"pyarrow"},
    ),
    "a client of a server": (
        [
            "from rosenblatt.serve import Client",
            "model = Client('http://127.0.0.1:9', retries=0).model('m')",
            """
try:
    model.learn_many([{'a': 1.0}, 'win money'], ['x', 'y'])
except OSError as error:
    assert error.learned == 0
""",
        ],
        HEAVY | {"fastapi", "pyarrow", "starlette", "uvicorn"},
    ),
    "arrays": (
        [
            "import numpy as np, rosenblatt",
            "X, y = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]), np.array(['a', 'b', 'a', 'b'])",
            "clf = rosenblatt.Perceptron(margin=0.5).fit(X, y).partial_fit(X, y)",
            "clf.save('arrays.model')",
            "assert rosenblatt.load('arrays.model').predict(X).tolist() == clf.predict(X).tolist()",
            "assert repr(clf) == 'Perceptron(margin=0.5)'",
        ],
        HEAVY | {"pyarrow"},
    ),
    "LIBSVM text": (
        [
            "main(['train', 'rows.svm', '-q', '-m', 'rows.model'])",
            "main(['train', 'rows.svm', '-q', '--stream', '-m', 'rows.model'])",
            "main(['predict', 'rows.model', 'rows.svm', '--scores'])",
            "main(['evaluate', 'rows.model', 'rows.svm'])",
            "main(['info', 'rows.model'])",
            "main(['explain', 'rows.model'])",
        ],
        HEAVY | {"pyarrow"},
    ),
    "regression": (
        [
            "main(['train', 'rows.svm', '-q', '--task', 'regression', '-m', 'numbers.model'])",
            "main(['predict', 'numbers.model', 'rows.svm'])",
        ],
        HEAVY | {"pyarrow"},
    ),
    "text": (
        [
            "main(['train', 'mails.csv', '-q', '--target', 'label', '-m', 'mails.model'])",
            "main(['predict', 'mails.model', 'mails.csv'])",
            "main(['evaluate', 'mails.model', 'mails.csv'])",
        ],
        HEAVY,
    ),
    "a table": (
        [
            "main(['train', 'people.csv', '-q', '--missing', 'fill', '-m', 'people.model'])",
            "main(['predict', 'people.model', 'people.csv', '--append'])",
            "main(['evaluate', 'people.model', 'people.csv'])",
        ],
        HEAVY,
    ),
    "tags and trees": (
        [
            "import rosenblatt.structured",
            "main(['tag', 'tags.model', '--train', 'trees.conllu', '--test', 'trees.conllu', '-q'])",
            "main(['tag', 'tags.model', 'trees.conllu'])",
            "main(['parse', 'trees.model', '--train', 'trees.conllu', '--no-taggers', '--test', 'trees.conllu', '-q'])",
            "main(['parse', 'trees.model', 'trees.conllu'])",
        ],
        HEAVY | {"pyarrow"},
    ),
}


def run(code, folder):
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("path", STEPS)
def test_a_path_imports_what_it_needs(path, tmp_path):
    statements, forbidden = STEPS[path]
    for name, text in {"rows.svm": SVM, "mails.csv": MAILS, "people.csv": PEOPLE, "trees.conllu": TREES}.items():
        (tmp_path / name).write_text(text)
    code = "import sys\nfrom rosenblatt.cli import main\n"
    for statement in statements:
        code += f"assert not {statement}\n" if statement.startswith("main(") else f"{statement}\n"
        code += f"loaded = sorted({forbidden!r} & sys.modules.keys())\n"
        code += f"assert not loaded, f'{{loaded}} after ' + {statement!r}\n"
    run(code, tmp_path)


LATE = """
import numpy as np, pickle, rosenblatt
from rosenblatt import online, structured
X, y = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0]]), np.array(["a", "b", "a", "b"])
clf = rosenblatt.Perceptron(margin=0.5).fit(X, y)
copy = pickle.loads(pickle.dumps(clf))
pipeline = structured.TagAndParse(structured.TransitionParser(max_iter=2), {"upos": structured.SequenceTagger()})
pipeline.set_params(parser__max_iter=3, folds=2)
assert pipeline.get_params()["parser__max_iter"] == 3
"""
ASKED = {
    "an import": "import sklearn.linear_model",
    "score": "assert clf.score(X, y) == 1.0",
    "the class": "assert rosenblatt.Perceptron.score is not None",
    "HTML": "assert '<div' in clf._repr_html_()",
    "metadata": "clf.set_fit_request",
    "callbacks": "clf.set_callbacks()",
    "a list of floats": "clf.predict([[1, 2]])",
    "what is not fitted": """
try:
    rosenblatt.Perceptron().predict(X)
except Exception as error:
    assert type(error).__name__ == "NotFittedError"
""",
}
ANSWERED = """
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.utils import get_tags
others = rosenblatt.MIRA(), rosenblatt.DeltaRuleRegressor(), online.OnlinePerceptron()
for learner in (clf, copy, clone(clf), pipeline, *others):
    assert isinstance(learner, BaseEstimator) and type(clone(learner)) is type(learner)
assert is_classifier(clf) and isinstance(clf, ClassifierMixin) and issubclass(rosenblatt.Perceptron, ClassifierMixin)
assert isinstance(rosenblatt.DeltaRuleRegressor(), RegressorMixin) and get_tags(clf).input_tags.sparse
assert clf.set_fit_request is not None and "_repr_html_" in dir(clf) and repr(clf) == "Perceptron(margin=0.5)"
assert clone(pipeline).get_params()["parser__max_iter"] == 3
"""


@pytest.mark.parametrize("asked", ASKED)
def test_an_estimator_is_one_of_scikit_learn_as_soon_as_that_is_imported(asked, tmp_path):
    run(LATE + "import sys; assert 'sklearn' not in sys.modules\n" + ASKED[asked] + ANSWERED, tmp_path)
