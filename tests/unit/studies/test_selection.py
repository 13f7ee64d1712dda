from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from g3nn.studies.records import Point, Record
from g3nn.studies.selection import Phase, chosen, current_phase, losses
from g3nn.studies.suite import Protocol

PROTOCOL = Protocol(selection_seeds=2, first_selection_seed=100, finalists=2, finalist_seeds=4)
FIRST, SECOND = (100, 101), (102, 103)

A, B, C = (Point("cora", "standard", "gcn", "elbo", {"lr": lr}) for lr in (0.1, 0.2, 0.3))


def choose(points: Sequence[Point], records: Sequence[Record], protocol: Protocol) -> Point | None:
    return chosen(points, losses(records), protocol)


Make = Callable[..., list[Record]]


@pytest.fixture
def select(make_record) -> Make:
    """Records of one point, one for each loss, from this seed on."""

    def make(point: Point, values: Sequence[float | None], first: int = 100, **changes: object) -> list[Record]:
        return [
            make_record(point, "select", seed, val_loss=value, **changes) for seed, value in enumerate(values, first)
        ]

    return make


@pytest.fixture
def first_round(select) -> list[Record]:
    return [*select(A, [1.0, 1.0]), *select(B, [0.9, 0.8]), *select(C, [1.2, 0.7])]


def test_a_grid_of_one_point_needs_no_records():
    assert choose([A], [], PROTOCOL) == A
    assert current_phase([A], {}, PROTOCOL) == Phase("trial", tuple((A, seed) for seed in range(10)))


def test_no_points_no_choice():
    assert choose([], [], PROTOCOL) is None


def test_the_first_round_trains_every_point_with_the_same_seeds():
    now = current_phase([A, B, C], {}, PROTOCOL)
    assert now.stage == "select"
    assert now.trainings == tuple((point, seed) for point in (A, B, C) for seed in FIRST)
    assert now.later == (4, PROTOCOL.trials)


def test_the_round_stays_whole_while_it_is_under_way(first_round):
    now = current_phase([A, B, C], losses(first_round[1:]), PROTOCOL)
    assert now == current_phase([A, B, C], {}, PROTOCOL)


def test_the_second_round_trains_the_best_with_further_seeds(first_round):
    now = current_phase([A, B, C], losses(first_round), PROTOCOL)
    assert now.stage == "select"
    assert set(now.trainings) == {(point, seed) for point in (B, C) for seed in SECOND}
    assert now.later == (PROTOCOL.trials,)


@pytest.mark.parametrize("left_out", [0, 5])
def test_no_choice_while_a_training_of_the_first_round_is_missing(first_round, left_out):
    del first_round[left_out]
    assert choose([A, B, C], first_round, PROTOCOL) is None


@pytest.mark.parametrize("left_out", [0, 3])
def test_no_choice_while_a_training_of_the_second_round_is_missing(first_round, select, left_out):
    second = [*select(B, [0.9, 0.9], 102), *select(C, [0.5, 0.5], 102)]
    del second[left_out]
    assert choose([A, B, C], first_round + second, PROTOCOL) is None


@pytest.mark.parametrize(("later", "winner"), [(0.5, C), (1.0, B)])
def test_the_lowest_mean_over_all_seeds_wins(first_round, select, later, winner):
    second = [*select(B, [0.9, 0.9], 102), *select(C, [later, later], 102)]
    assert choose([A, B, C], first_round + second, PROTOCOL) == winner


def test_a_point_that_missed_the_second_round_cannot_win(first_round, select):
    second = [*select(B, [5.0, 5.0], 102), *select(C, [5.0, 5.0], 102)]
    assert choose([A, B, C], first_round + second, PROTOCOL) in (B, C)


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_a_training_without_a_sound_end_is_infinitely_bad(first_round, select, status):
    first_round[2] = replace(first_round[2], status=status)
    second = [*select(A, [1.0, 1.0], 102), *select(C, [1.0, 1.0], 102)]
    assert choose([A, B, C], first_round + second, PROTOCOL) == C


def test_a_loss_that_is_missing_is_infinitely_bad(select):
    first = [*select(A, [1.0, 1.0]), *select(B, [None, 0.1], status="diverged")]
    protocol = replace(PROTOCOL, finalists=1)
    assert choose([A, B], first, protocol) == A


def test_where_nothing_works_there_is_still_a_choice(select):
    records = [one for point in (A, B) for one in select(point, [None] * 4, status="failed")]
    assert choose([A, B], records, PROTOCOL) == min((A, B), key=lambda point: point.key)


def test_equal_points_are_told_apart_by_their_key(select):
    records = [one for point in (A, B, C) for one in select(point, [1.0] * 4)]
    lowest = min((A, B, C), key=lambda point: point.key)
    for points in ([A, B, C], [C, B, A], [B, C, A]):
        assert choose(points, records, PROTOCOL) == lowest


def test_one_finalist_needs_no_second_round(first_round):
    protocol = replace(PROTOCOL, finalists=1)
    assert choose([A, B, C], first_round, protocol) == B
    now = current_phase([A, B, C], {}, protocol)
    assert now.stage == "select"
    assert now.later == (0, PROTOCOL.trials)


def test_there_are_no_more_finalists_than_points(first_round):
    protocol = replace(PROTOCOL, finalists=9)
    now = current_phase([A, B, C], losses(first_round), protocol)
    assert now.stage == "select"
    assert len(now.trainings) == 3 * 2


def test_no_further_seeds_no_second_round(first_round):
    protocol = replace(PROTOCOL, finalist_seeds=2)
    assert choose([A, B, C], first_round, protocol) == B


def test_only_the_validation_loss_counts(first_round, select):
    records = first_round + select(B, [0.9, 0.9], 102) + select(C, [0.5, 0.5], 102)
    rng = random.Random(0)
    other = [
        replace(
            record,
            val_accuracy=rng.random(),
            seconds=rng.random(),
            epochs=rng.randrange(99),
            split=str(rng.random()),
        )
        for record in records
    ]
    assert choose([A, B, C], other, PROTOCOL) == choose([A, B, C], records, PROTOCOL) == C


def test_records_of_other_seeds_stages_and_points_do_not_count(first_round, select, make_record):
    records = first_round + select(B, [0.9, 0.9], 102) + select(C, [0.5, 0.5], 102)
    more = [
        *select(B, [-50.0] * 20, 104),
        *(make_record(B, "trial", seed, val_loss=-50.0) for seed in range(100, 104)),
        *select(Point("cora", "standard", "gcn", "elbo", {"lr": 0.4}), [-50.0] * 4),
    ]
    assert choose([A, B, C], more + records, PROTOCOL) == C


def test_order_does_not_matter(first_round, select):
    records = first_round + select(B, [0.9, 0.9], 102) + select(C, [0.5, 0.5], 102)
    rng = random.Random(1)
    for _ in range(10):
        points = [A, B, C]
        rng.shuffle(points)
        rng.shuffle(records)
        assert choose(points, records, PROTOCOL) == C
