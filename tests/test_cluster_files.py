"""Training on files with a cluster: workers read pieces of the files, and the model is one of files like any other."""

from pathlib import Path

import distributed
import numpy as np
import pytest
import scipy.sparse as sp

import rosenblatt
from rosenblatt import Perceptron, cluster, errors, workflow
from rosenblatt.cluster.files import piece_size, shards_of_bytes
from rosenblatt.workflow import Options, reading_for

pytestmark = pytest.mark.timeout(300)


def rows(count=400, features=30, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((count, features), density=0.2, rng=rng, format="csr")
    X.data = np.round(X.data * 8)
    scores = X @ rng.normal(size=(features, 3))
    return X, scores.argmax(axis=1)


def svmlight(path, X, y, names=("1", "2", "3")):
    with open(path, "w") as file:
        for i in range(X.shape[0]):
            row = X[[i]]
            pairs = " ".join(f"{j + 1}:{v:g}" for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True))
            file.write(f"{names[y[i]]} {pairs}\n")
    return path


@pytest.fixture
def data(tmp_path):
    X, y = rows()
    parts = [svmlight(tmp_path / f"part-{i}.svm", X[i::3], y[i::3]) for i in range(3)]
    return [str(part) for part in parts]


def content(model, tmp_path):
    path = tmp_path / "saved.model"
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("stream", [False, True])
def test_files_are_learned_in_shards(client, data, tmp_path, stream):
    options = Options(passes=3, stream=stream)
    trained = cluster.train(data, reading_for(data), Perceptron(), options, client=client, shards=4)
    assert trained.training["cluster"] == {"shards": 4, "mixing": "uniform"}
    assert [entry["rows"] for entry in trained.training["history"]] == [400] * 3
    assert trained.training["streamed"] is stream
    assert trained.features == 30
    assert trained.classes_.tolist() == [1, 2, 3]
    assert trained.learner.mixing_.shards == 4
    answers = trained.predict(data)
    assert answers.shape == (400,)
    again = rosenblatt.load(_saved(trained, tmp_path))
    assert again.predict(data).tolist() == answers.tolist()
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=3, dashboard_address=":0") as threads:
        other = cluster.train(data, reading_for(data), Perceptron(), options, client=threads, shards=4)
    assert content(other, tmp_path) == content(trained, tmp_path)


def _saved(model, tmp_path):
    model.save(tmp_path / "again.model")
    return tmp_path / "again.model"


def test_files_are_cut_by_their_size():
    sizes = [0, 1, 320, 321, 1 << 31, 1 << 40]
    assert [piece_size(size, shards=8) for size in sizes] == [1, 1, 10, 11, 1 << 26, 1 << 26]
    assert [shards_of_bytes(size) for size in sizes] == [8, 8, 8, 8, 16, 1 << 13]
    assert shards_of_bytes((1 << 30) + 1) == 9


@pytest.mark.parametrize("stream", [False, True])
def test_one_shard_of_files_is_ordinary_training(client, data, tmp_path, stream):
    options = Options(passes=2, stream=stream)
    alone = workflow.train(data, reading_for(data), Perceptron(), options)
    trained = cluster.train(data, reading_for(data), Perceptron(), options, client=client, shards=1)
    assert content(trained, tmp_path) == content(alone, tmp_path)


def test_a_stream_learns_what_memory_does_in_the_order_of_the_files(client, data):
    models = [
        cluster.train(
            data, reading_for(data), Perceptron(keep="average"), Options(passes=2, order="cyclic", stream=stream),
            client=client, shards=3,
        ).learner
        for stream in (False, True)
    ]  # fmt: skip
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert models[0].class_count_.tolist() == models[1].class_count_.tolist()


@pytest.mark.parametrize("stream", [False, True])
def test_labels_and_columns_that_come_late(client, tmp_path, stream):
    X, y = rows(300)
    path = svmlight(tmp_path / "late.svm", X, np.minimum(y, 1), ("7", "8"))
    with open(path, "a") as file:
        file.write("late 1:2 999:3\n8 2:1\n")
    data, options = [str(path)], Options(passes=2, stream=stream)
    trained = cluster.train(data, reading_for(data), Perceptron(), options, client=client, shards=2)
    assert trained.classes_.tolist() == ["7", "8", "late"]
    assert trained.features == 999
    assert trained.learner.n_seen_ == 2 * 302


def test_a_bad_line_is_named_from_any_worker(client, data):
    lines = Path(data[1]).read_text().splitlines()
    lines[70] = "2 1:1 x:3"
    Path(data[1]).write_text("\n".join(lines) + "\n")
    for stream in (False, True):
        with pytest.raises(errors.FormatError) as failure:
            cluster.train(data, reading_for(data), Perceptron(), Options(stream=stream), client=client, shards=4)
        assert failure.value.path == data[1]
        assert failure.value.line == 71
    for part, line in ((0, 3), (2, 90), (2, 110)):
        lines = Path(data[part]).read_text().splitlines()
        lines[line] = "2 1:1 x:3"
        Path(data[part]).write_text("\n".join(lines) + "\n")
    for stream in (False, True):
        options = Options(passes=2, on_error="skip", stream=stream)
        trained = cluster.train(data, reading_for(data), Perceptron(), options, client=client, shards=4)
        assert trained.training["skipped"] == 4
        assert [entry["rows"] for entry in trained.training["history"]] == [396, 396]


def test_tables_with_text_and_quotes(client, tmp_path):
    path = tmp_path / "mail.csv"
    texts = ['ham,"hello, friend\nline', 'spam,"win money\nline']
    lines = ["label,text,size", *(f'{texts[i % 2]} {i}",{i}' for i in range(200))]
    path.write_text("\n".join(lines) + "\n")
    data = [str(path)]
    reading = reading_for(data, target="label", text=["text"])
    trained = cluster.train(data, reading, Perceptron(), Options(passes=3), client=client, shards=3)
    assert (trained.predict(data) == np.array(["ham", "spam"] * 100)).all()
    assert trained.learner.n_seen_ == 200 * len(trained.training["history"])
    fitted = cluster.fit(Perceptron(max_iter=2), data, "label", client=client, shards=3)
    assert fitted.classes_.tolist() == ["ham", "spam"]


def test_parquet_and_json_lines(client, tmp_path):
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    a, b = rng.integers(-5, 6, (2, 300))
    label = np.where(a + 2 * b > 0, "up", "down")
    table = pa.table({"a": a, "b": b, "label": label})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=25)
    with open(tmp_path / "rows.jsonl", "w") as file:
        file.writelines(
            json.dumps({"a": int(p), "b": int(q), "label": c}) + "\n" for p, q, c in zip(a, b, label, strict=True)
        )
    found = []
    for name in ("rows.parquet", "rows.jsonl"):
        data = [str(tmp_path / name)]
        model = cluster.train(data, reading_for(data, target="label"), Perceptron(), client=client, shards=2)
        assert (model.predict(data) == label).mean() > 0.9
        found.append(model.learner.n_seen_ / len(model.training["history"]))
    assert found == [300, 300]


def test_what_files_cannot_do_is_said(client, data, tmp_path):
    with pytest.raises(errors.InvalidParameter, match="holdout"):
        cluster.train(data, reading_for(data), Perceptron(), Options(holdout=0.1), client=client)
    with pytest.raises(errors.UnsupportedOperation, match="AROW cannot be trained in shards"):
        cluster.train(data, reading_for(data), rosenblatt.AROW(), client=client)
    import gzip

    packed = tmp_path / "one.svm.gz"
    packed.write_bytes(gzip.compress(Path(data[0]).read_bytes()))
    with pytest.raises(errors.InvalidParameter, match="shards must be at most 1"):
        cluster.train(str(packed), reading_for([str(packed)]), Perceptron(), client=client, shards=2)


def test_a_folder_among_the_shards_is_named(client, data, tmp_path):
    (tmp_path / "part-9.svm").mkdir()
    with pytest.raises(IsADirectoryError, match=r"the folder '.*part-9\.svm' matches the pattern"):
        cluster.train(str(tmp_path / "part-*.svm"), reading_for(data), Perceptron(), client=client)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes().replace(b":1", b":7")), errors.InvalidData, "has changed"),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), errors.InvalidData, "has changed"),
        (Path.unlink, FileNotFoundError, "No such file"),
    ],
)
def test_a_file_that_changes_while_it_is_streamed_is_named(client, data, change, error, words):
    """After the first shard has learned; also where bad rows are skipped, for it is none."""
    waiting = [Path(data[1])]
    options = Options(passes=3, stream=True, on_error="skip")
    with pytest.raises(error, match=words) as raised:
        cluster.train(
            data, reading_for(data), Perceptron(), options, client=client, shards=3,
            watch=lambda progress: change(waiting.pop()) if waiting else None,
        )  # fmt: skip
    assert data[1] in str(raised.value)


def test_a_stream_resumes_from_its_checkpoint(client, data, tmp_path):
    place = tmp_path / "run.checkpoint"
    whole = cluster.train(data, reading_for(data), Perceptron(), Options(passes=4, stream=True), client=client, shards=3)
    for passes, resume in ((2, False), (4, True)):
        options = Options(passes=passes, stream=True)
        again = cluster.train(
            data, reading_for(data), Perceptron(), options, client=client, shards=3, checkpoint=place, resume=resume
        )
    assert content(again, tmp_path) == content(whole, tmp_path)


def test_a_file_that_cannot_be_cut_is_one_shard(client, data, tmp_path, monkeypatch):
    import gzip

    packed = tmp_path / "one.svm.gz"
    packed.write_bytes(gzip.compress(Path(data[0]).read_bytes()))
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    options = Options(passes=2)
    trained = cluster.train("one.svm.gz", reading_for(["one.svm.gz"]), Perceptron(), options, client=client)
    alone = workflow.train(str(packed), reading_for([str(packed)]), Perceptron(), options)
    assert content(trained, tmp_path) == content(alone, tmp_path)
