"""The structured perceptron for whatever can be searched.

A problem is a *search*. It offers `decode(x, w)`, the path of the input x that the weights w score highest, and
`features(x, path)`, a mapping from names to numbers; the score of a path is Σ w[name]·number, which is
`w.score(features(x, path))`. A path is right if its loss is 0: `loss(gold, path)` where the search offers one, else the
number of parts that differ. The two paths to learn from are gold and what `decode` answers, unless the search offers
`violation(x, gold, w, margin)`, which returns them, right and wrong, or None where gold has won, with
score(gold) > score(path) + margin·loss(gold, path) for every other path. They may be prefixes of paths, if `features` gives
the features of prefixes too; inexact search needs that (`beam_search`). A tie is no win for gold in `violation`; `decode`
does not know gold, and breaks ties as it likes.
"""
