"""Training in shards on a cluster: the same bytes whatever the workers do, and one shard is ordinary training."""

import distributed
import numpy as np
import pytest
import scipy.sparse as sp

import rosenblatt
from rosenblatt import Perceptron, cluster, errors
from rosenblatt.cluster.fitting import deal
from rosenblatt.cluster.linear_run import agree_on, labels_of_arrays
from rosenblatt.cluster.rows import RowSetup
from rosenblatt.cluster.sums import Learned, ReadFacts, ShardsHere, add_sums, weigh
from rosenblatt.engine.mixing import MixingTrainer, ShardReport
from rosenblatt.engine.train import Limits, train
from rosenblatt.engine.visits import Visits
from rosenblatt.testing import reference

pytestmark = pytest.mark.timeout(300)


def separable(rows=300, features=6, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (rows, features)).astype(float)
    scores = X @ rng.normal(size=(features, classes))
    lead = np.sort(scores, axis=1)
    keep = lead[:, -1] - lead[:, -2] > 1.0
    return X[keep], np.array(["ham", "spam", "eggs", "toast"])[scores[keep].argmax(axis=1)]


def saved(model, tmp_path):
    path = tmp_path / "saved.model"
    model.save(path)
    return path.read_bytes()


def by_hand(estimator, X, y, shards, epochs, mixing="uniform", shuffle=True):
    """The same training without a cluster: every shard in this process."""
    learner = rosenblatt.estimators.interface.clone(estimator)
    X, y = learner._read(X, y, reset=True)
    parts = [deal(X, y, None, None, i, shards) for i in range(shards)]
    agreement = agree_on([part.summary() for part in parts], [], labels_of_arrays)
    learner._begun(agreement.features, classes_=np.arange(len(agreement.classes)), n_mistakes_=0)
    learner.class_count_ = np.zeros(len(agreement.classes), np.int64)
    model = learner._initial_model(learner._plan(), agreement.rows, agreement.features, len(agreement.classes), None)
    setup = RowSetup(learner, agreement.number, 0, shuffle)
    none = Visits(np.empty(0, np.int64), "cyclic", np.random.default_rng(0))
    trainer = MixingTrainer(model, ShardsHere(parts, setup, mixing), none, mixing)
    train(trainer, Limits(epochs))
    return model


@pytest.mark.parametrize(("margin", "multiclass"), [(9.0, "joint"), (0.0, "ovr")])
def test_shards_are_mixed_by_their_updates_where_these_are_not_mistakes(margin, multiclass):
    X, y = separable(rows=200, classes=3)
    labels, parts = np.unique(y, return_inverse=True)[1], [np.arange(i, len(y), 4) for i in range(4)]
    naive = reference.learn_in_shards(
        X, labels, 3, [parts] * 2, lambda updates: np.divide(updates, sum(updates)),
        multiclass=multiclass, step=reference.perceptron(margin),
    )  # fmt: skip
    by_mistakes = [np.divide(mistakes, sum(mistakes)) for mistakes in naive.mistakes]
    assert not np.allclose(naive.shares, by_mistakes, atol=0.01)
    estimator = Perceptron(margin=margin, multiclass=multiclass, keep="average")
    here = by_hand(estimator, X, y, 4, 2, "mistakes", shuffle=False)
    np.testing.assert_allclose(here.weights.w.T, naive.last, rtol=1e-12, atol=1e-12)
    assert here.updates == sum(map(sum, naive.updates))


def test_what_shards_found_out_is_added_up():
    facts = [ReadFacts(3, None, 2), ReadFacts(9, 4, 0), ReadFacts(5, 1, 7), ReadFacts(1, None, 1)]
    report = ShardReport(5, 2, 3, 0.0, 0, False)
    counts = [None, np.array([1, 2]), np.array([0, 4]), None]
    learned = [Learned(report, None, *each, np.array(["new"])) for each in zip(facts, counts, strict=True)]
    found = add_sums([weigh("mistakes", each) for each in learned])
    assert found.facts == ReadFacts(width=9, smallest=1, skipped=10)
    assert found.class_count.tolist() == [1, 6]
    assert found.weight == 4 * 3
    assert found.reports == [report] * 4
    assert found.change is None
    assert len(found.new_labels) == 4


@pytest.mark.parametrize("mixing", ["uniform", "mistakes", "changed"])
@pytest.mark.parametrize(("classes", "layout"), [(2, "dense"), (3, "sparse")])
def test_a_cluster_learns_what_one_process_does(client, mixing, classes, layout):
    X, y = separable(classes=classes)
    X = sp.csr_array(X) if layout == "sparse" else X
    estimator = Perceptron(keep="average", max_iter=4, tol=None)
    model = cluster.fit(estimator, X, y, client=client, shards=5, mixing=mixing)
    here = by_hand(estimator, X, y, 5, model.n_iter_, mixing)
    assert np.array_equal(model.weights_.w, here.weights.w)
    assert np.array_equal(model.weights_.drift, here.weights.drift)
    assert model.classes_.tolist() == sorted(set(y))
    assert model.n_seen_ == len(y) * model.n_iter_ == here.seen
    assert model.n_updates_ == here.updates
    assert model.n_updates_ == sum(shard.updates for epoch in model.mixing_.epochs for shard in epoch.shards)


@pytest.mark.parametrize(
    "estimator",
    [
        Perceptron(margin=1.0, multiclass="joint"),
        Perceptron(multiclass="ovo", learning_rate="constant"),
        rosenblatt.PassiveAggressiveClassifier(average=True),
        rosenblatt.MIRA(),
        rosenblatt.PAUM(keep="last"),
    ],
    ids=repr,
)
def test_every_learner_that_is_a_margin_and_a_step(client, estimator):
    X, y = separable(rows=120, classes=3)
    estimator.set_params(max_iter=2, tol=None)
    model = cluster.fit(estimator, X, y, client=client, shards=3)
    here = by_hand(estimator, X, y, 3, 2)
    assert np.array_equal(model.weights_.w, here.weights.w)
    assert model.n_iter_ == 2
    assert model.score(X, y) > 0.5


def test_one_shard_is_an_ordinary_fit(client, tmp_path):
    X, y = separable(classes=3)
    alone = cluster.fit(Perceptron(), X, y, client=client, shards=1)
    assert saved(alone, tmp_path) == saved(Perceptron().fit(X, y), tmp_path)


def test_the_number_of_workers_makes_no_difference(client, tmp_path):
    X, y = separable(classes=3)
    two = saved(cluster.fit(Perceptron(), X, y, client=client, shards=7), tmp_path)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=3, dashboard_address=":0") as threads:
        assert saved(cluster.fit(Perceptron(), X, y, client=threads, shards=7), tmp_path) == two


def test_training_resumes_from_any_checkpoint(client, tmp_path):
    X, y = separable(seed=3)
    whole = saved(cluster.fit(Perceptron(max_iter=6, tol=None), X, y, client=client, shards=4), tmp_path)
    place = tmp_path / "run.checkpoint"
    cluster.fit(Perceptron(max_iter=2, tol=None), X, y, client=client, shards=4, checkpoint=place)
    assert rosenblatt.load(place).learner.n_iter_ == 2
    again = cluster.fit(Perceptron(max_iter=6, tol=None), X, y, client=client, shards=4, checkpoint=place, resume=True)
    assert saved(again, tmp_path) == whole


def test_a_checkpoint_refuses_other_data_and_other_settings(client, tmp_path):
    X, y = separable()
    place = tmp_path / "run.checkpoint"
    fit = {"client": client, "checkpoint": place}
    with pytest.raises(errors.UnsupportedOperation, match="there is no checkpoint"):
        cluster.fit(Perceptron(max_iter=2), X, y, shards=3, resume=True, **fit)
    cluster.fit(Perceptron(max_iter=2), X, y, shards=3, **fit)
    with pytest.raises(errors.InvalidParameter, match="shards must be the same"):
        cluster.fit(Perceptron(max_iter=2), X, y, shards=4, resume=True, **fit)
    with pytest.raises(errors.InvalidParameter, match="mixing must be the same"):
        cluster.fit(Perceptron(max_iter=2), X, y, shards=3, mixing="mistakes", resume=True, **fit)
    with pytest.raises(errors.InvalidParameter, match="eta0 must be the same"):
        cluster.fit(Perceptron(max_iter=2, eta0=0.5), X, y, shards=3, resume=True, **fit)
    with pytest.raises(errors.InvalidData, match="not the data"):
        cluster.fit(Perceptron(max_iter=2), X + 1, y, shards=3, resume=True, **fit)
    with pytest.raises(errors.InvalidParameter, match="checkpoint"):
        cluster.fit(Perceptron(), X, y, client=client, resume=True)


def test_the_report_holds_the_theorem(client):
    X, y = separable()
    model = cluster.fit(Perceptron(), X, y, client=client, shards=6, mixing="mistakes")
    certified = model.certify(X, y)
    assert certified.theorem == "McDonald, Hall and Mann"
    assert certified.holds
    assert certified.count == pytest.approx(model.mixing_.weighted_updates)
    assert "weighted by the mixture" in str(certified)
    assert model.mixing_.bound(certified.radius, certified.margin[0]) == pytest.approx(certified.bound)
    for epoch in model.mixing_.epochs:
        assert sum(epoch.shares) == pytest.approx(1.0)
    changed = cluster.fit(Perceptron(), X, y, client=client, shards=6, mixing="changed").certify(X, y)
    assert changed.theorem == ""


def test_weights_of_rows_and_of_classes(client):
    X, y = separable(classes=3)
    weight = np.arange(len(y)) % 3.0
    part = weight > 0
    twice = Perceptron(keep="average", max_iter=3, tol=None, class_weight={"ham": 2.0})
    model = cluster.fit(twice, X, y, client=client, shards=3, sample_weight=weight)
    assert model.n_seen_ == 3 * part.sum()
    assert model.class_weight == {"ham": 2.0}
    assert model.class_count_.sum() == part.sum()
    ham = y == "ham"
    two = cluster.fit(Perceptron(), X, ham, client=client, shards=3, sample_weight=weight + 1)
    assert "different weights" in two.certify(X, ham).reason
    balanced = Perceptron(keep="average", max_iter=3, tol=None, class_weight="balanced")
    labels, counts = np.unique(y, return_counts=True)
    by_hand = dict(zip(labels.tolist(), (len(y) / (len(labels) * counts)).tolist(), strict=True))
    explicit = Perceptron(keep="average", max_iter=3, tol=None, class_weight=by_hand)
    found = [cluster.fit(one, X, y, client=client, shards=3).coef_ for one in (balanced, explicit)]
    assert np.array_equal(*found)


def test_what_cannot_be_mixed_is_refused(client):
    X, y = separable()
    for estimator, message in (
        (rosenblatt.AROW(), "AROW cannot be trained in shards"),
        (rosenblatt.DeltaRuleClassifier(), "DeltaRuleClassifier cannot be trained in shards"),
        (Perceptron(keep="pocket"), "keep must be one of"),
        (Perceptron(order="most-violated"), "order must be one of"),
        (Perceptron(early_stopping=True), "early_stopping"),
        (Perceptron(max_updates=3), "max_updates"),
    ):
        with pytest.raises(errors.RosenblattError, match=message):
            cluster.fit(estimator, X, y, client=client)
    with pytest.raises(errors.InvalidParameter, match="shards must be a whole number"):
        cluster.fit(Perceptron(), X, y, client=client, shards=0)
    with pytest.raises(errors.InvalidParameter, match="mixing must be one of"):
        cluster.fit(Perceptron(), X, y, client=client, mixing="often")
    with pytest.raises(errors.InvalidData, match="NaN"):
        cluster.fit(Perceptron(), np.full((9, 2), np.nan), y[:9], client=client)
    with pytest.raises(errors.InvalidData, match="one class only"):
        cluster.fit(Perceptron(), X, np.ones(len(X)), client=client)
    huge = X.copy()
    huge[7] = 1e308
    with pytest.raises(errors.NumericOverflow, match="row 7"):
        cluster.fit(Perceptron(eta0=1e10), huge, y, client=client, shards=2)


def test_dask_arrays_frames_and_bags(client, tmp_path):
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd
    import pandas as pd

    X, y = separable(classes=3)
    estimator = Perceptron(keep="average", max_iter=3, tol=None)
    lazy = da.from_array(X, chunks=(40, 2))
    model = cluster.fit(estimator, lazy, da.from_array(y, chunks=50), client=client)
    assert model.mixing_.shards == lazy.numblocks[0]
    again = cluster.fit(estimator, lazy, y, client=client)
    assert saved(again, tmp_path) == saved(model, tmp_path)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=y)
    table = dd.from_pandas(frame, npartitions=4)
    named = cluster.fit(estimator, table, "label", client=client)
    assert named.feature_names_in_.tolist() == list("abcdef")
    assert named.mixing_.shards == 4
    assert named.predict(frame.drop(columns="label")).tolist() == named.predict(frame[list("abcdef")]).tolist()
    pairs = db.from_sequence(list(zip(X.tolist(), y.tolist(), strict=True)), npartitions=3)
    assert cluster.fit(estimator, pairs, client=client).score(X, y) > 0.8
    one = cluster.fit(Perceptron(), lazy, y, client=client, shards=1)
    assert saved(one, tmp_path) == saved(Perceptron().fit(X, y), tmp_path)
    with pytest.raises(errors.InvalidParameter, match="a column of the DataFrame"):
        cluster.fit(estimator, table, "lable", client=client)


def test_mixing_has_the_manners_of_scikit_learn(client):
    import dask.array as da
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError

    X, y = separable()
    mixing = cluster.Mixing(Perceptron(), client=client, shards=3)
    assert repr(clone(mixing)).startswith("Mixing(")
    for answer in (mixing.predict, mixing.decision_function):
        with pytest.raises(NotFittedError, match="not fitted"):
            answer(X)
    fitted = mixing.fit(X, y)
    assert fitted.score(X, y) == 1.0
    assert fitted.report_.shards == 3
    lazy = da.from_array(X, chunks=(50, 3))
    assert fitted.predict(lazy).compute().tolist() == fitted.predict(X).tolist()
    assert fitted.score(lazy, da.from_array(y, chunks=50)) == 1.0
    weight, other = np.arange(len(y)) % 4.0, np.where(np.arange(len(y)) % 3, y, "other")
    share = weight[other == y].sum() / weight.sum()
    weighted = fitted.score(lazy, da.from_array(other, chunks=50), da.from_array(weight, chunks=50))
    assert weighted == pytest.approx(share, rel=1e-12)
    assert fitted.score(X, other, weight) == pytest.approx(share, rel=1e-12)
    assert np.array_equal(fitted.decision_function(X), fitted.estimator_.decision_function(X))


def test_progress_is_shown_for_each_shard(client):
    X, y = separable()
    steps = []
    cluster.fit(Perceptron(max_iter=2, tol=None), X, y, client=client, shards=3, watch=steps.append)
    assert {step.epoch for step in steps} == {0, 1, 2}
    assert max(step.done for step in steps) == 3
    assert steps[-1].seen == len(y)  # of the first epoch


def test_a_cluster_that_is_not_there(monkeypatch):
    monkeypatch.setattr("rosenblatt.cluster.connection._PATIENCE", 1)
    with pytest.raises(errors.ClusterUnavailable, match="no scheduler answers"):
        cluster.fit(Perceptron(), [[1.0], [2.0]], [0, 1], client="tcp://127.0.0.1:9")
