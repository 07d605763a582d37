"""The transition system reaches every projective tree and nothing else, and the oracle's costs are those of exhaustive
search."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rosenblatt.structured.transition import transitions as system
from rosenblatt.structured.trees import is_projective, is_tree
from rosenblatt.testing.structured import trees

SIZES = range(5)


def shifted(heads):
    """Heads as the kernels take them: counted from 0, the root as n."""
    return np.array([head - 1 if head else len(heads) for head in heads], np.int64)


def configuration(stack, front):
    """(cells, front) of a configuration without arcs."""
    cells = system.new_cells(len(stack) + 1)
    for at, word in enumerate((*stack, front)):
        system._write_bare(cells, at, word, at - 1)
    return cells, len(stack)


def moves(stack, front, n, single_root):
    """(stack, front, arc) after SHIFT, LEFT and RIGHT, None where it may not be taken: the definition, on tuples."""
    top_alone = len(stack) == 1 or not (front == n and single_root)
    return (
        ((*stack, front), front + 1, None) if front < n else None,
        (stack[:-1], front, (front, stack[-1])) if stack and top_alone else None,
        (stack[:-1], front, (stack[-2], stack[-1])) if len(stack) > 1 else None,
    )


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_all_sequences_of_actions_build_exactly_the_projective_trees(n, single_root):
    built = set()

    def go(cells, used, front, actions):
        may = system.legal_actions(cells, front, n, single_root)
        if cells[front, system.WORD] == n and cells[front, system.DEPTH] == 0:
            assert len(actions) == 2 * n
            heads, labels = np.zeros(n, np.int64), np.zeros(n, np.int64)
            system.write_arcs(np.array(actions, np.int64), heads, labels)
            built.add(tuple(heads.tolist()))
            return
        assert any(may)
        for side in range(3):
            if may[side]:
                go(*reversed_step(cells, used, front, side), [*actions, side])

    def reversed_step(cells, used, front, side):
        after, used = system.act(cells, used, front, side)
        return cells, used, after

    cells = system.new_cells(3**12)
    go(cells, system.begin(cells), 0, [])
    assert built == set(trees(n, projective=True, single_root=single_root))


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_costs_are_those_of_exhaustive_search(n, single_root):
    """In every configuration that can be reached, for every projective gold tree: the cost of an action is the best number
    of gold arcs before it less the best number after it. So an action of cost 0 always exists."""
    for heads in trees(n, projective=True, single_root=single_root):
        gold = shifted(heads)
        reached = set()

        @cache
        def most(stack, front, gold=gold, reached=reached):
            reached.add((stack, front))
            return max((value for value in outcomes(stack, front, gold) if value is not None), default=0)

        def outcomes(stack, front, gold):
            return [
                None if move is None else most(*move[:2]) + (move[2] is not None and gold[move[2][1]] == move[2][0])
                for move in moves(stack, front, n, single_root)
            ]

        assert most((), 0) == n  # the gold tree itself can be reached
        for stack, front in reached:
            cells, at = configuration(stack, front)
            costs = system.costs(cells, at, gold, single_root)
            may = system.legal_actions(cells, at, n, single_root)
            values = outcomes(stack, front, gold)
            assert [value is not None for value in values] == list(may)
            for value, cost in zip(values, costs, strict=True):
                assert value is None or cost == most(stack, front) - value
            assert (stack, front) == ((), n) or min(c for c, m in zip(costs, may, strict=True) if m) == 0


@pytest.mark.parametrize("single_root", [False, True])
def test_the_gold_sequence_builds_the_gold_tree_with_its_labels(single_root):
    for n in range(6):
        for heads in trees(n, projective=True, single_root=single_root):
            gold, labels = shifted(heads), np.arange(n)
            cells = system.new_cells(4 * n + 1)
            used, front, actions = system.begin(cells), 0, []
            for _ in range(2 * n):
                actions.append(system.gold_action(cells, front, gold, labels, single_root))
                front, used = system.act(cells, used, front, actions[-1])
            built, named = np.zeros(n, np.int64), np.zeros(n, np.int64)
            system.write_arcs(np.array(actions, np.int64), built, named)
            assert tuple(built.tolist()) == heads
            assert named.tolist() == labels.tolist()


def test_cells_tell_the_outermost_children_and_all_their_labels():
    """The cat that sat: 1 ← 2 → 3, with labels 0, 1, 2, and a second child on each side."""
    gold = np.array([2, 2, 5, 2, 2], np.int64)
    labels = np.array([7, 3, 0, 70, 5])
    cells = system.new_cells(21)
    used, front = system.begin(cells), 0
    for _ in range(9):
        front, used = system.act(cells, used, front, system.gold_action(cells, front, gold, labels, True))
    head = cells[cells[front, system.BELOW]]
    assert head[system.WORD] == 2
    assert head[[system.LEFT, system.LEFT_LABEL, system.LEFT2, system.LEFT2_LABEL, system.LEFTS]].tolist() == [
        0,
        7,
        1,
        3,
        2,
    ]
    assert head[[system.RIGHT, system.RIGHT_LABEL, system.RIGHT2, system.RIGHT2_LABEL]].tolist() == [4, 5, 3, 70]
    assert head[system.RIGHTS] == 2
    assert head[system.LEFT_SET] == 1 << 7 | 1 << 3
    assert head[system.RIGHT_SET] == 1 << 5 | 1 << (70 % 64)


@pytest.mark.parametrize("n", range(6))
def test_lifting_gives_a_projective_tree_and_leaves_one_alone(n):
    for heads in trees(n, single_root=True):
        lifted = np.array(heads, np.int32)
        crossing, moved = system.make_projective(lifted, np.array([0, n]))
        assert is_tree(lifted, single_root=True)
        assert is_projective(lifted)
        assert moved == sum(new != old for new, old in zip(lifted.tolist(), heads, strict=True))
        assert (crossing == 0) == (moved == 0) == bool(is_projective(np.array(heads, np.int32)))


def test_lifting_moves_the_shorter_of_two_crossing_arcs():
    heads = np.array([0, 4, 1, 1, 2], np.int32)  # 4 → 2 spans 3, whose head is 1
    assert system.make_projective(heads, np.array([0, 5])) == (1, 2)
    assert heads.tolist()[2:4] == [1, 1]


def test_labels_are_noted_by_the_kind_of_their_arcs():
    uses = np.zeros(4, np.uint8)
    system.note_uses(np.array([1, 3, 1], np.int64), np.array([0, 1, 2]), uses)
    assert uses.tolist() == [system.ON_LEFT, system.ON_ROOT, system.ON_RIGHT, 0]


def test_a_kind_of_arc_that_no_label_was_seen_on_is_open_to_all_that_were_seen():
    usable = np.zeros(3, np.uint8)
    system.write_usable(np.array([system.ON_ROOT, system.ON_LEFT, 0], np.uint8), usable)
    assert usable.tolist() == [system.ON_ROOT | system.ON_RIGHT, system.ON_LEFT | system.ON_RIGHT, 0]
    system.write_usable(np.zeros(3, np.uint8), usable)
    assert usable.tolist() == [7, 7, 7]
