"""Train a tagger and a parser on a treebank, evaluate them, and parse a sentence.

    python examples/treebank.py TRAIN.conllu TEST.conllu ["A sentence , in tokens ."] [picture.png]

Any treebank of Universal Dependencies will do; files may end in .gz, .bz2 or .xz.
"""

from __future__ import annotations

import sys
from time import perf_counter

from rosenblatt.data import conllu
from rosenblatt.structured import SequenceTagger, TagAndParse, TransitionParser, evaluation
from rosenblatt.structured.pipeline import examples


def main(train: str, test: str, text: str = "Dogs that bark do not bite .", picture: str | None = None) -> None:
    X, y = examples(conllu.read(train))
    print(f"{len(X):,} sentences, {sum(map(len, X)):,} words")
    start = perf_counter()
    model = TagAndParse(TransitionParser(), SequenceTagger.fast()).fit(X, y)
    print(f"taggers and parser trained in {perf_counter() - start:.0f} s, with jackknifed tags")

    X, y = examples(conllu.read(test))
    model.predict(X[:1])  # compiles the code that predicts
    start = perf_counter()
    guess = model.predict(X)
    print(f"{sum(map(len, X)) / (perf_counter() - start):,.0f} words per second, tagged and parsed")
    for place, name in enumerate(model.taggers_):
        scores = evaluation.tags(*([[word[place] for word in answer] for answer in part] for part in (y, guess)))
        print(f"{name} {scores.words}")
    trees = evaluation.trees(*([[word[-2:] for word in answer] for answer in part] for part in (y, guess)))
    print("\n".join(str(trees).splitlines()[:4]))

    words = text.split()
    (answer,) = model.predict([words])
    print()
    for number, (word, (*tags, head, label)) in enumerate(zip(words, answer, strict=True), 1):
        print(f"{number:3} {word:15} {' '.join(tags):15} {head:3} {label}")
    if picture:
        from rosenblatt import plot

        tokens = [(word, tags[0]) for word, tags in zip(words, answer, strict=True)]
        plot.tree(tokens, [tags[-2:] for tags in answer]).figure.savefig(picture, dpi=110)
        print(f"saved {picture}")


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
