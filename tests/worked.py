"""The data of the worked examples in three sets of lecture notes: Waterloo's e-mails, CMU's six points, IIIT-H's eight."""

import numpy as np

SPAM = np.array(
    [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]], float
)
SPAM_Y = np.array([1, -1, 1, -1, 1, -1])
SIX = np.array([[-1, 2], [1, 0], [1, 1], [-1, 0], [-1, -2], [1, -1]], float)
SIX_Y = np.array([-1, 1, 1, -1, -1, 1])
EIGHT = np.array([[1, 1], [1, 3], [2, 1], [2, 2], [-1, -1], [-1, -3], [-2, -1], [-2, -2]], float)
EIGHT_Y = np.array([1, 1, 1, 1, -1, -1, -1, -1])


def tag_features(x, z, markov, history):
    """φ(x, z) by its definition: the form, the form before, the form with the one after, and pairs or triples of tags; with
    `history` also the form with the tag before."""
    words, tags, count = [None, *x, None], [None, None, *z, None], {}

    def see(*name):
        count[name] = count.get(name, 0) + 1

    for i, tag in enumerate(z):
        see("form", words[i + 1], tag)
        see("before", words[i], tag)
        see("after", words[i + 1], words[i + 2], tag)
        if history:
            see("history", words[i + 1], tags[i + 1], tag)
    for a, b, c in zip(tags, tags[1:], tags[2:], strict=False):
        see("pair", b, c)
        if markov == 2:
            see("triple", a, b, c)
    return count
