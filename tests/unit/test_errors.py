from __future__ import annotations

import pickle

import pytest

from g3nn.base.errors import G3NNError, InputError, Problem, Problems, check_name, suggestion


def test_one_problem_is_one_line():
    error = InputError([Problem("lr", "-1", "a number above 0", "Try 0.01.")])
    assert str(error) == "lr: got -1; expected a number above 0. Try 0.01."


def test_advice_may_be_left_out():
    assert str(Problem("lr", "-1", "a number above 0")) == "lr: got -1; expected a number above 0"


def test_several_problems_are_listed_together():
    problems = Problems()
    problems.add("lr", -1, "a number above 0")
    problems.add("eta", -2, "a number of at least 0")
    with pytest.raises(InputError) as caught:
        problems.raise_if_any()
    first, *rest = str(caught.value).splitlines()
    assert first == "2 problems:"
    assert [line.split(":")[0] for line in rest] == ["  - lr", "  - eta"]
    assert [problem.argument for problem in caught.value.problems] == ["lr", "eta"]


def test_no_problem_no_error():
    problems = Problems()
    problems.raise_if_any()
    assert problems.found == []


def test_an_input_error_is_a_value_error_and_one_of_ours():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, G3NNError)


def test_problems_of_an_inner_check_are_gathered():
    problems = Problems()
    with problems.gathered():
        check_name("model", "gnc", ["gcn"])
    with problems.gathered():
        check_name("prior", "mpl", ["mlp"])
    assert [problem.argument for problem in problems.found] == ["model", "prior"]


def test_other_errors_are_not_swallowed():
    with pytest.raises(KeyError), Problems().gathered():
        raise KeyError("a mistake of ours")


def test_a_known_name_passes():
    check_name("model", "gcn", ["gcn", "gat"])


@pytest.mark.parametrize("given", ["gnc", None, 3])
def test_an_unknown_name_lists_the_known_ones(given):
    with pytest.raises(InputError, match=r"expected gcn or gat") as caught:
        check_name("model", given, ["gcn", "gat"])
    assert caught.value.problems[0].given == repr(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("GCN", "gcn"),
        ("gnc", "gcn"),
        ("missing_edge", "missing-edge"),
        ("weight_deca", "weight_decay"),
        ("label_propagatoin", "label-propagation"),
    ],
)
def test_the_nearest_name_is_suggested(given, expected):
    names = ["gcn", "mlp", "missing-edge", "weight_decay", "label-propagation"]
    assert suggestion(given, names) == f"Did you mean {expected!r}?"


def test_nothing_is_suggested_when_nothing_is_near():
    assert suggestion("xyzzy", ["gcn", "mlp"]) == ""


def test_an_input_error_travels_between_processes():
    problems = Problems()
    problems.add("lr", -1, "a number above 0")
    problems.add("hidden", 0, "at least 1")
    with pytest.raises(InputError) as caught:
        problems.raise_if_any()
    copied = pickle.loads(pickle.dumps(caught.value))
    assert copied.problems == caught.value.problems
    assert str(copied) == str(caught.value)
