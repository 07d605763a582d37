"""Taggers, parsers and structured perceptrons on a cluster: the same laws as for rows."""

from pathlib import Path

import distributed
import pytest

from rosenblatt import cluster, errors
from rosenblatt.data import conllu
from rosenblatt.structured import GraphParser, SequenceTagger, StructuredPerceptron, TransitionParser

pytestmark = pytest.mark.timeout(300)

WORDS = {"the": "DET", "a": "DET", "dog": "NOUN", "cat": "NOUN", "old": "ADJ", "barks": "VERB", "sleeps": "VERB"}
PATTERNS = ("the dog barks", "a cat sleeps", "the old cat sleeps", "a old dog barks", "dog sleeps")


def treebank(count=30):
    """Lines of CoNLL-U: the verb is the root, the noun its subject, and all else depends on the noun."""
    blocks = []
    for number in range(count):
        words = PATTERNS[number % len(PATTERNS)].split()
        rows = []
        for i, word in enumerate(words, 1):
            verb, noun = len(words), len(words) - 1
            head, relation = (0, "root") if i == verb else (verb, "nsubj") if i == noun else (noun, "dep")
            rows.append(f"{i}\t{word}\t_\t{WORDS[word]}\t{WORDS[word][0]}\t_\t{head}\t{relation}\t_\t_")
        blocks.append("\n".join([f"# sent_id = {number}", *rows, ""]))
    return "\n".join(blocks) + "\n"


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "train.conllu"
    path.write_text(treebank())
    return [str(path)]


@pytest.fixture(scope="module")
def threads():
    """A client of a worker in this process, which compiles kernels once for all."""
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as client:
        yield client


def sentences(files):
    return [sentence for path in files for sentence in conllu.read(path)]


def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("mixing", ["uniform", "changed"])
def test_a_tagger_learns_from_lists_bags_and_files(client, threads, files, tmp_path, mixing):
    import dask.bag as db

    read = sentences(files)
    X, y = [one.forms for one in read], [one.column("upos") for one in read]
    tagger = SequenceTagger(max_iter=3)
    settings = {"client": client, "shards": 3, "mixing": mixing}
    from_lists = cluster.fit(tagger, X, y, **settings)
    assert from_lists.score(X, y) == 1.0
    assert from_lists.mixing_.shards == 3
    assert from_lists.vocabulary_ == set(WORDS)
    bag = db.from_sequence(list(zip(X, y, strict=True)), npartitions=3)
    assert cluster.fit(tagger, bag, client=client, mixing=mixing).score(X, y) == 1.0
    from_files = cluster.fit(tagger, files, "upos", **settings)
    assert from_files.column == "upos"
    assert from_files.score(X, y) == 1.0
    again = cluster.fit(tagger, files, "upos", **settings | {"client": threads})
    assert saved(again, tmp_path) == saved(from_files, tmp_path)


@pytest.mark.parametrize("parser", [TransitionParser(max_iter=2), GraphParser(max_iter=2)], ids=["transition", "graph"])
def test_a_parser_learns_from_files(threads, files, parser):
    read = sentences(files)
    X, y = [one.tokens("form", "upos", "xpos") for one in read], [one.tree() for one in read]
    model = cluster.fit(parser, files, client=threads, shards=4)
    assert model.score(X, y) == 1.0
    assert model.mixing_.mixing == "changed"
    assert model.n_seen_ == 2 * len(read)


def test_one_shard_is_an_ordinary_fit(client, files, tmp_path):
    read = sentences(files)
    X, y = [one.forms for one in read], [one.column("upos") for one in read]
    alone = SequenceTagger(max_iter=2).fit(X, y)
    assert saved(cluster.fit(SequenceTagger(max_iter=2), X, y, client=client, shards=1), tmp_path) == saved(alone, tmp_path)


class Longest:
    """A search for the word of a list that ends in a vowel."""

    def decode(self, words, w):
        return max(words, key=lambda word: w.score(self.features(words, word)))

    def features(self, words, word):
        return {("last", word[-1]): 1, ("length", len(word)): 1}


def test_a_structured_perceptron_learns_from_examples(threads):
    X = [["cat", "koala"], ["panda", "fox"], ["bee", "ant", "cow"], ["dog", "hyena"]] * 3
    y = ["koala", "panda", "bee", "hyena"] * 3
    model = cluster.fit(StructuredPerceptron(Longest(), max_iter=5), X, y, client=threads, shards=3)
    assert model.predict(X) == y
    assert model.mixing_.shards == 3


def test_training_resumes(client, files, tmp_path):
    place = tmp_path / "run.checkpoint"
    settings = {"client": client, "shards": 3}
    whole = cluster.fit(SequenceTagger(max_iter=4), files, "upos", **settings)
    cluster.fit(SequenceTagger(max_iter=2), files, "upos", checkpoint=place, **settings)
    rest = cluster.fit(SequenceTagger(max_iter=4), files, "upos", checkpoint=place, resume=True, **settings)
    assert saved(rest, tmp_path) == saved(whole, tmp_path)


def test_a_bad_line_is_named_from_any_worker(client, files):
    lines = Path(files[0]).read_text().split("\n")
    bad = next(i for i in range(80, len(lines)) if lines[i].startswith("2\t"))
    lines[bad] = lines[bad].replace("2\t", "3\t", 1)
    Path(files[0]).write_text("\n".join(lines))
    with pytest.raises(errors.FormatError) as failure:
        cluster.fit(SequenceTagger(), files, "upos", client=client, shards=4)
    assert (failure.value.path, failure.value.line) == (files[0], bad + 1)


def test_what_cannot_be_read_is_said(client, files):
    with pytest.raises(errors.InvalidData, match="there is no column ner"):
        cluster.fit(SequenceTagger(), files, "ner", client=client, shards=2)
    with pytest.raises(errors.InvalidParameter, match="y must be None with files"):
        cluster.fit(TransitionParser(), files, "upos", client=client, shards=2)
    with pytest.raises(errors.UnsupportedOperation, match="cannot read files"):
        cluster.fit(StructuredPerceptron(Longest()), files, client=client, shards=2)
    with pytest.raises(errors.UnsupportedOperation, match="early_stopping"):
        cluster.fit(SequenceTagger(early_stopping=True), files, client=client)
