"""Transition parsers: the kernels do what the papers say, written out in plain Python on integers; and what only they
promise."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt import rules
from rosenblatt.structured.features.templates import attributes_used
from rosenblatt.structured.features.weight_table import WeightLists, check_lists
from rosenblatt.structured.features.words import OUTSIDE, word_attributes
from rosenblatt.structured.transition import quantized, state_features
from rosenblatt.structured.transition import transitions as system
from rosenblatt.structured.transition.greedy import random_unit
from rosenblatt.structured.transition.parser import MOST_LABELS, TransitionParser, templates_for
from rosenblatt.structured.trees import is_projective, is_tree
from rosenblatt.testing.structured import trees

FIELDS = ("form", "upos")
TEMPLATES = (
    "form[s0]",
    "upos[s0] upos[b0]",
    "upos[s0] upos[b0] form[s1]",
    "upos[s2] upos[b1] upos[b3]",
    "upos[b2] form[s0l]",
    "label[s0l2] label[s0r]",
    "upos[s0] label[s0r2]",
    "label[s1l] distance[s0]",
    "label[s1r] upos[s1r2] distance[s1]",
    "label[b0l] label[b0l2]",
    "lefts[b0] leftlabels[b0] rights[s0]",
    "leftlabels[s0] rightlabels[s0] lefts[s0]",
    "lefts[s1] rights[s1] rightlabels[s1]",
)
LABELS = ("a", "b", "c")
SHAPES = [list(trees(n, single_root=True)) for n in range(6)]


@st.composite
def treebanks(draw):
    """Up to six sentences with trees of any shape, projective or not."""
    X, y = [], []
    for _ in range(draw(st.integers(1, 6))):
        heads = draw(st.sampled_from(SHAPES[draw(st.integers(0, 5))]))
        n = len(heads)
        X.append([(draw(st.sampled_from("vwxyz")), draw(st.sampled_from("NVD"))) for _ in range(n)])
        y.append([(head, draw(st.sampled_from(LABELS))) for head in heads])
    return X, y


# The reference: a configuration is (stack, front, arcs in order), a feature a key, weights a dictionary.

M = 2**64


def mix(h, x):
    h = ((h ^ x) * 0x9E3779B97F4A7C15) % M
    h = ((h ^ (h >> 32)) * 0xBF58476D1CE4E5B9) % M
    return (h ^ (h >> 32)) or 1


def number(x):
    return mix(x % M, int(OUTSIDE))


def text(word):
    return int(word_attributes([word], ["form"])[0, 0])


def seed(beginning):
    return int.from_bytes(blake2b(" ".join(beginning).encode(), digest_size=8).digest(), "little")


def value(attribute, place, stack, front, arcs, sentence, numbers):
    """What a term of a template sees; 0 for nothing."""
    n, base, rest = len(sentence), place[:2], place[2:]
    depth = int(base[1])
    if base[0] == "b":
        word = front + depth if front + depth <= n else None
    else:
        word = stack[-1 - depth] if depth < len(stack) else None
    sides = {"l": [], "r": []}
    for head, child, label in arcs:
        if head == word:
            sides["l" if child < head else "r"].append((child, numbers[label]))
    if rest:
        child = sides[rest[0]][-1 - (rest[1:] == "2") :][:1] if len(sides[rest[0]]) > (rest[1:] == "2") else None
        if child is None:
            return 0
        return number(child[0][1]) if attribute == "label" else text(sentence[child[0][0]][FIELDS.index(attribute)])
    if attribute in FIELDS:
        if word is None:
            return int(OUTSIDE)
        return 0x726F6F742E if word == n else text(sentence[word][FIELDS.index(attribute)])
    if word is None:
        return 0
    if attribute == "distance":
        beyond = front if depth == 0 else stack[-depth]
        return number([0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7][min(beyond - word, 11)])
    side = sides["l" if attribute.startswith("left") else "r"]
    return number(len(side) if attribute.endswith("s") and "labels" not in attribute else sum({1 << k for _, k in side}))


def keys_of(configuration, sentence, numbers):
    keys = []
    for template in TEMPLATES:
        terms, h = template.split(), 0
        for size, term in enumerate(terms, 1):
            attribute, place = term[:-1].split("[")
            seen = value(attribute, place, *configuration, sentence, numbers)
            h = mix(seed(terms[:size]) ^ h, seen) if seen else None
            if h is None:
                break
        if h is not None:
            keys.append(h)
    return keys


class Reference:
    """The same learner by the book."""

    def __init__(self, parser, seed):
        self.parser, self.seed = parser, seed
        self.w, self.drift, self.numbers, self.uses = {}, {}, {}, {}
        self.clock = self.updates = self.mistakes = 0

    def after(self, configuration, action):
        stack, front, arcs = configuration
        if action[0] == "shift":
            return (*stack, front), front + 1, arcs
        head = front if action[0] == "left" else stack[-2]
        return stack[:-1], front, (*arcs, (head, stack[-1], action[1]))

    def allowed(self, configuration, n):
        """All actions, labels in the order of their numbers."""
        stack, front, _ = configuration
        names, seen = sorted(self.uses, key=self.numbers.get), 0
        for name in names:
            seen |= self.uses[name]
        usable = {name: self.uses[name] | (7 & ~seen) for name in names}
        if front < n:
            yield ("shift",)
        if stack and (front < n or len(stack) == 1):
            yield from (("left", name) for name in names if usable[name] & (1 if front == n else 2))
        if len(stack) > 1:
            yield from (("right", name) for name in names if usable[name] & 4)

    def cost(self, configuration, action, heads, labels):
        """Gold arcs that are out of reach after the action and were not before, by search; and a wrong label."""
        lost = self.most(configuration, heads) - self.most(self.after(configuration, action), heads)
        if action[0] == "shift":
            return lost
        head, word, label = self.after(configuration, action)[2][-1]
        return lost + (heads[word] == head and labels[word] != label)

    def most(self, configuration, heads):
        stack, front, arcs = configuration
        n, made = len(heads), sum(heads[word] == head for head, word, _ in arcs)
        key = (stack, front)
        if key not in self.known:
            plain = [("shift",)] if front < n else []
            plain += [("left", "")] if stack and (front < n or len(stack) == 1) else []
            plain += [("right", "")] if len(stack) > 1 else []
            self.known[key] = max((self.most(self.after((stack, front, ()), a), heads) for a in plain), default=0)
        return made + self.known[key]

    def code(self, action):
        return 0 if action[0] == "shift" else 2 * self.numbers[action[1]] + (1 if action[0] == "left" else 2)

    def score(self, keys, action):
        return sum(self.w.get((key, self.code(action)), 0) for key in keys)

    def push(self, difference, tau):
        for name, count in difference.items():
            if count:
                self.w[name] = self.w.get(name, 0) + tau * count
                self.drift[name] = self.drift.get(name, 0) + self.clock * tau * count

    def visit(self, sentence, tree):
        n = len(sentence)
        lifted = np.array([head for head, _ in tree], np.int32)
        system.make_projective(lifted, np.array([0, n]))
        heads = [head - 1 if head else n for head in lifted.tolist()]
        labels = [label for _, label in tree]
        for word, label in enumerate(labels):
            self.numbers.setdefault(label, len(self.numbers))
            kind = 1 if heads[word] == n else 2 if heads[word] > word else 4
            self.uses[label] = self.uses.get(label, 0) | kind
        self.known = {}
        (self.greedily if self.parser.beam == 1 else self.by_beam)(sentence, heads, labels)
        self.clock += 1

    def greedily(self, sentence, heads, labels):
        n, configuration = len(sentence), ((), 0, ())
        for turn in range(2 * n):
            keys = keys_of(configuration, sentence, self.numbers)
            actions = list(self.allowed(configuration, n))
            cost = {action: self.cost(configuration, action, heads, labels) for action in actions}
            plain = {action: self.score(keys, action) for action in actions}
            right = max((a for a in actions if cost[a] == 0), key=plain.get)
            others = [a for a in actions if cost[a] > 0]
            if others:
                rival = max(others, key=lambda a: plain[a] + self.parser.margin * cost[a])
                self.mistakes += plain[rival] >= plain[right]
                if plain[right] <= plain[rival] + self.parser.margin * cost[rival]:
                    self.updates += 1
                    self.push({(key, self.code(right)): 1 for key in keys}, 1)
                    self.push({(key, self.code(rival)): -1 for key in keys}, 1)
            follow = random_unit(np.uint64(self.seed), self.clock, turn) < self.parser.explore
            configuration = self.after(configuration, max(actions, key=plain.get) if follow else right)

    def gold(self, configuration, heads, labels):
        """An arc as soon as it costs nothing."""
        for action in self.allowed(configuration, len(heads)):
            if action[0] != "shift":
                head, word, label = self.after(configuration, action)[2][-1]
                right = heads[word] == head and labels[word] == label
                if right and self.cost(configuration, action, heads, labels) == 0:
                    return action
        return ("shift",)

    def by_beam(self, sentence, heads, labels):
        n, early = len(sentence), self.parser.update == "early"
        beam, gold, gold_score = [(0, ())], (), 0  # (score and costs, actions), best first
        worst = None

        def configured(actions):
            configuration = (), 0, ()
            for action in actions:
                configuration = self.after(configuration, action)
            return configuration

        for turn in range(2 * n):
            offers = []
            for total, actions in beam:
                configuration = configured(actions)
                keys = keys_of(configuration, sentence, self.numbers)
                for action in self.allowed(configuration, n):
                    extra = self.parser.margin * self.cost(configuration, action, heads, labels)
                    offers.append((total + self.score(keys, action) + extra, (*actions, action)))
            beam = sorted(offers, key=lambda offer: -offer[0])[: self.parser.beam]
            right = self.gold(configured(gold), heads, labels)
            gold_score += self.score(keys_of(configured(gold), sentence, self.numbers), right)
            gold = (*gold, right)
            fallen = gold not in [actions for _, actions in beam]
            rivals = [(total, actions) for total, actions in beam if actions != gold]
            if rivals:
                ahead = rivals[0][0] - gold_score
                if (fallen or turn == 2 * n - 1) if early else (worst is None or ahead > worst[0]):
                    worst = ahead, rivals[0][1], gold
            if early and fallen:
                break
        if worst is None:
            return
        ahead, rival, gold = worst
        difference = {}
        for actions, sign in ((gold, 1), (rival, -1)):
            for t, action in enumerate(actions):
                for key in keys_of(configured(actions[:t]), sentence, self.numbers):
                    name = key, self.code(action)
                    difference[name] = difference.get(name, 0) + sign
        if ahead >= 0 and any(difference.values()):
            self.updates += 1
            self.push(difference, 1)
        lost = sum(self.cost(configured(rival[:t]), action, heads, labels) for t, action in enumerate(rival))
        self.mistakes += ahead >= 0 and ahead - self.parser.margin * lost >= 0


def weights_of(parser):
    """{(key, action): (w, drift)} of all weights that are not 0."""
    keys, sizes, outcomes, w, drift = parser._model.table.to_parts().arrays.values()
    names = zip(np.repeat(keys, sizes).tolist(), outcomes.tolist(), strict=True)
    return {name: pair for name, pair in zip(names, zip(w.tolist(), drift.tolist(), strict=True), strict=True) if any(pair)}


@settings(max_examples=15)
@given(
    treebanks(),
    st.sampled_from([(1, "max-violation"), (2, "max-violation"), (3, "early"), (4, "max-violation")]),
    st.sampled_from([0, 3]),
)
def test_kernels_learn_what_the_reference_learns(treebank, way, margin):
    X, y = treebank
    parser = TransitionParser(way[0], update=way[1], margin=margin, fields=FIELDS, templates=TEMPLATES, explore=0.5)
    parser.partial_fit(X, y).partial_fit(X, y)
    reference = Reference(parser, np.uint64(state_features.mix(np.uint64(0), np.uint64(parser._model.seed))))
    for sentence, tree in [*zip(X, y, strict=True)] * 2:
        reference.visit(sentence, tree)
    expected = {name: (reference.w[name], reference.drift[name]) for name in reference.w}
    assert weights_of(parser) == {name: pair for name, pair in expected.items() if any(pair)}
    assert (parser.n_updates_, parser.n_mistakes_, parser.n_seen_) == (reference.updates, reference.mistakes, 2 * len(X))


@settings(max_examples=10)
@given(treebanks(), st.sampled_from([1, 4]), st.booleans())
def test_every_answer_is_a_projective_tree(treebank, beam, single_root):
    X, y = treebank
    parser = TransitionParser(beam, fields=FIELDS, templates=TEMPLATES, single_root=single_root, max_iter=2).fit(X, y)
    longer = [sentence * 3 for sentence in X]
    for sentence, tree in zip(longer, parser.predict(longer), strict=True):
        heads = np.array([head for head, _ in tree], np.int32)
        assert len(tree) == len(sentence)
        assert is_tree(heads, single_root=single_root)
        assert is_projective(heads)
        known = {label for gold in y for _, label in gold}
        assert {label for _, label in tree} <= known


TOY = (
    [[("the", "D"), ("dog", "N"), ("barks", "V")], [("cats", "N"), ("sleep", "V"), ("here", "A")]],
    [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root"), (2, "advmod")]],
)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_treebank_that_can_be_learned_is_learned(beam):
    X, y = TOY
    parser = TransitionParser(beam, fields=FIELDS, templates=TEMPLATES, margin=0).fit(X, y)
    assert parser.stop_reason_ == "converged"
    assert parser.predict(X) == y
    assert parser.score(X, y) == 1


def test_a_label_of_the_root_is_given_to_the_root_alone():
    X, y = TOY
    parser = TransitionParser(fields=FIELDS, templates=["form[s2]"], max_iter=1).fit(X, y)  # knows next to nothing
    for tree in parser.predict([sentence * 5 for sentence in X]):
        assert all((head == 0) == (label == "root") for head, label in tree)


def test_long_sentences_and_strange_words():
    X, y = TOY
    parser = TransitionParser(2, fields=FIELDS, templates=TEMPLATES, max_iter=2).fit(X, y)
    strange = [("🙂‍↔️", "N"), ("شجرة", ""), ("w" * 10_000, "V"), ("\ud800", "N"), ("", "D")]
    (long, odd) = parser.predict([[*X[0], *X[1]] * 834, strange])
    assert is_tree([head for head, _ in long], single_root=True)
    assert len(long) == 5004
    assert is_tree([head for head, _ in odd], single_root=True)


def test_without_labels_every_arc_has_the_same():
    X, y = TOY
    parser = TransitionParser(fields=FIELDS, templates=TEMPLATES, labelled=False).fit(X, y)
    assert [[head for head, _ in tree] for tree in parser.predict(X)] == [[head for head, _ in tree] for tree in y]
    assert {label for tree in parser.predict(X) for _, label in tree} == {"_"}


def test_what_cannot_be_learned_from_is_refused_by_its_number():
    X, y = TOY
    parser = TransitionParser(fields=FIELDS, templates=TEMPLATES)
    with pytest.raises(ValueError, match="sentence 2: the heads are not a tree; they form a cycle"):
        parser.fit(X, [y[0], [(2, "a"), (1, "b"), (0, "root")]])
    with pytest.raises(ValueError, match="sentence 2 has more than one word with head 0; try single_root=False"):
        parser.fit(X, [y[0], [(0, "root"), (0, "root"), (2, "a")]])
    two = TransitionParser(fields=FIELDS, templates=TEMPLATES, single_root=False, margin=0)
    assert two.fit(X, [y[0], [(0, "root"), (0, "root"), (2, "a")]]).predict(X)[1][0] == (0, "root")
    with pytest.raises(ValueError, match=r"label is asked of s0l, .* and not of 's0'"):
        parser.set_params(templates=["label[s0]"]).fit(X, y)
    with pytest.raises(ValueError, match="no place is called 'q0'"):
        parser.set_params(templates=["form[q0]"]).fit(X, y)
    with pytest.raises(ValueError, match="beam must be a whole number ≥ 1 and ≤ 4096; got 0"):
        TransitionParser(0).fit(X, y)
    with pytest.raises(ValueError, match="templates has changed"):
        TransitionParser(fields=FIELDS, templates=TEMPLATES).partial_fit(X, y).set_params(
            templates=TEMPLATES[:3]
        ).partial_fit(X, y)
    names = [[(max(0, i - 1) + (i > 1), str(k))] for i in (0,) for k in range(MOST_LABELS + 1)]
    with pytest.raises(ValueError, match="labels; at most"):
        TransitionParser(fields=FIELDS, templates=TEMPLATES).fit([X[0][:1]] * len(names), names)


def test_gold_trees_that_cross_are_lifted_and_counted(tmp_path):
    X, y = TOY
    gold = [(3, "a"), (0, "root"), (2, "b"), (1, "c")]  # 1 hangs on 3 and 4 on 1, across 2
    words = (X[0] * 2)[:4]
    parser = TransitionParser(fields=FIELDS, templates=TEMPLATES).fit([*X, words], [*y, gold])
    assert (parser.n_nonprojective_, parser.n_lifted_) == (1, 2)
    parser.save(tmp_path / "model")
    again = TransitionParser.load(tmp_path / "model")
    assert (again.n_nonprojective_, again.n_lifted_) == (1, 2)
    assert TransitionParser(fields=FIELDS, templates=TEMPLATES).fit(X, y).n_lifted_ == 0
    assert gold == [(3, "a"), (0, "root"), (2, "b"), (1, "c")]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("gold", [[], [(0, "root")], [(2, "left"), (0, "root")], [(0, "root"), (1, "right")]])
def test_where_no_label_has_been_seen_any_will_do(beam, gold):
    """A parser that has seen no arc to the left, or none at all, still answers with trees, and learns without them."""
    words = [("a", "A"), ("b", "B")]
    parser = TransitionParser(beam, fields=FIELDS, templates=TEMPLATES, explore=1.0)
    parser.partial_fit([words[: len(gold)]], [gold])
    for tree in parser.predict([[], words[:1], words, words * 3]):
        assert is_tree([head for head, _ in tree], single_root=True)
        assert {label for _, label in tree} <= {label for _, label in gold} | ({"_"} if not gold else set())


def test_labels_may_arrive_later():
    X, y = TOY
    parser = TransitionParser(fields=FIELDS, templates=TEMPLATES).partial_fit(X[:1], y[:1])
    for _ in range(5):
        parser.partial_fit(X[1:], y[1:])
    assert parser.predict(X[1:]) == y[1:]


@pytest.mark.parametrize(
    "fields", [("form",), ("form", "upos"), ("form", "upos", "xpos"), ("form", "upos", "xpos", "feats")]
)
def test_there_are_templates_for_all_fields(fields):
    texts = templates_for(fields)
    assert len(set(texts)) == len(texts) > 100
    attributes = {"form", "shape", "suffix1", "suffix2", "suffix3", *fields}
    assert set(templates_for(fields, suffixes=False)) < set(texts)
    assert set(fields) <= set(attributes_used(texts))
    assert state_features.parse_state_templates(texts, sorted(attributes)).leaves.size == len(texts)


def test_ends_of_words_tell_what_forms_and_tags_do_not(tmp_path):
    """A made-up language in which an object ends in -ot, as Hungarian's do in -t, and words come in any order."""
    stems, order = ["bal", "dim", "fer", "gan", "hol", "jav"], [(2, "obj"), (0, "root")]
    X = [[(f"{stem}ot", "NOUN"), ("lat", "VERB")] for stem in stems] + [
        [(f"{stem}a", "NOUN"), ("lat", "VERB")] for stem in stems
    ]
    y = [order] * len(stems) + [[(2, "nsubj"), (0, "root")]] * len(stems)
    new = [[("kemot", "NOUN"), ("lat", "VERB")], [("kema", "NOUN"), ("lat", "VERB")]]
    parser = TransitionParser(fields=("form", "upos")).fit(X, y)
    assert parser.predict(new) == [y[0], y[-1]]
    without = TransitionParser(fields=("form", "upos"), suffixes=False).fit(X, y)
    first, second = without.predict(new)
    assert first == second
    without.save(tmp_path / "old", resume=True)
    again = TransitionParser.load(tmp_path / "old").set_params(suffixes=True)  # as a file of before they were the default
    assert again.partial_fit(X, y)._model.templates == templates_for(("form", "upos"), suffixes=False)


def test_words_without_the_tags_that_the_parser_learned_are_warned_of(recwarn):
    X, y = TOY
    parser = TransitionParser(fields=FIELDS, templates=TEMPLATES).fit(X, y)
    blank = [[(form, "_") for form, _ in sentence] for sentence in X]
    with pytest.warns(UserWarning, match=f"no word has a value of {FIELDS[1]} .all are _., which this parser learned"):
        parser.predict(blank)
    parser.predict([*blank, *X])  # some have tags
    mixed = TransitionParser(fields=FIELDS, templates=TEMPLATES).fit([*X, blank[0]], [*y, y[0]])
    mixed.predict(blank[:1])  # a few such words are nothing new
    none = TransitionParser(fields=FIELDS, templates=TEMPLATES).fit(blank, y)
    none.predict(blank)
    assert not recwarn.list


def test_pruning_makes_files_smaller_and_averages_are_used(tmp_path):
    X, y = TOY
    parser = TransitionParser(fields=FIELDS, templates=TEMPLATES, margin=0).fit(X, y)
    parser.save(tmp_path / "all")
    parser.set_params(prune=1.0).save(tmp_path / "some")
    assert (tmp_path / "some").stat().st_size < (tmp_path / "all").stat().st_size
    weights = {name: w - drift / parser.n_seen_ for name, (w, drift) in weights_of(parser).items()}
    sizes = [abs(w) for w in weights.values() if w]
    unit = max(sizes) / 32767
    keys, counts, actions, whole = parser._model.freeze(True, 1.0).lists
    names = zip(np.repeat(keys, counts).tolist(), actions.tolist(), strict=True)
    kept = {name: round(w / unit) for name, w in weights.items() if abs(w) > np.mean(sizes)}
    assert dict(zip(names, whole.tolist(), strict=True)) == kept


@settings(max_examples=20)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(0, 2**32))
def test_a_quantized_table_adds_up_what_its_lists_say(sizes, seed):
    """Rows, lists and features that are not there, in any mixture, with as many keys asked for as there is room."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(1, 2**64, len(sizes), np.uint64, endpoint=False)
    parts = [rng.choice(45, size, replace=False) for size in sizes]
    weights = [rng.integers(1, 32768, size) * rng.choice([-1, 1], size) for size in sizes]
    live = [i for i, size in enumerate(sizes) if size]
    lists = WeightLists(
        keys[live],
        np.array([sizes[i] for i in live], np.int64),
        np.concatenate([parts[i] for i in live] or [np.zeros(0)]).astype(np.uint16),
        np.concatenate([weights[i] for i in live] or [np.zeros(0)]).astype(np.int16),
    )
    check_lists(lists, 45)
    table = quantized.index_quantized(lists, 45)
    asked = rng.permutation(np.concatenate([keys, rng.integers(1, 2**64, 5, np.uint64, endpoint=False)]))
    expected = np.zeros(45, np.int64)
    for i in live:
        np.add.at(expected, parts[i], weights[i])
    scores = np.ones(table.rows.shape[1], np.int32)
    quantized._add_up(table, asked, len(asked), np.empty(len(asked), np.uint64), scores)
    assert scores[:45].tolist() == expected.tolist()


def test_passive_aggressive_steps_keep_their_caps():
    X, y = TOY
    parser = TransitionParser(3, rule=rules.PA1(C=0.25), fields=FIELDS, templates=TEMPLATES, margin=1).fit(X, y)
    assert parser.predict(X) == y
    assert max(abs(w) for w, _ in weights_of(parser).values()) <= 0.25 * parser.n_updates_


@pytest.mark.parametrize("random_state", range(6))
def test_the_seed_in_kernels_is_unsigned_whatever_its_value(random_state):
    """A seed below 2⁶³ that is a Python int would be signed in a kernel, and compiling it would fail."""
    parser = TransitionParser(fields=FIELDS, templates=TEMPLATES, random_state=random_state, max_iter=1)
    parser.fit([[("a", "A"), ("b", "B")]], [[(2, "x"), (0, "y")]])
    options = parser._tree_trainer(parser._model, None, parser._plan().visits_in_order(np.arange(1))).options
    assert type(options.seed) is np.uint64
