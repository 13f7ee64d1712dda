"""Which node is asked next, and how well the model does on what chance asks."""

from __future__ import annotations

import time
import uuid
import warnings
from multiprocessing import active_children

import pytest
from label_desk import AtOnce, desk_of
from label_stub import Counting, Failing
from small_tables import write

from g3nn.base.errors import InputError, Problems
from g3nn.graph.calibrate import wilson_interval
from g3nn.labelling.background import Background
from g3nn.labelling.opinions import EVERY, WINDOW, opinions, progress
from g3nn.labelling.project import CHOSEN, CORRECTION, RANDOM, Answer, Project
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import Records, ShownColumns
from g3nn.labelling.tables import Known, read_unlabelled


def give(desk, node, label="art", session="one", person="Ann", kind="label", note=""):
    return desk.answer(Answer(uuid.uuid4().hex, person, session, node, kind, label, note))[0]


def label_of(node):
    return ("art", "law", "tea")[int(node[1:]) % 3]


@pytest.fixture
def desk(tmp_path):
    made = desk_of(tmp_path)
    made.project.add_classes(["art", "law", "tea"])
    yield made
    made.project.close()


def test_from_nothing_to_a_model(desk):
    first = desk.next("one", "Ann")
    assert (first["guess"], first["how"]) == (None, CHOSEN)
    assert desk.next("one", "Ann")["node"] == first["node"]
    give(desk, first["node"]["id"], "art")
    assert desk.next("one", "Ann")["guess"] is None
    give(desk, desk.next("one", "Ann")["node"]["id"], "law")
    assert desk.next("one", "Ann")["guess"] == [("art", 0.5), ("law", 0.5)]


def test_labels_of_the_table_are_not_asked_and_may_be_corrected(tmp_path):
    desk = desk_of(tmp_path, labelled=58)
    assert {desk.next(session, "Ann")["node"]["id"] for session in "ab"} == {"p58", "p59"}
    assert desk.next("c", "Ann") is None
    assert desk.background.taught.labels[0] == "art"
    assert give(desk, "p0", "tea").how == CORRECTION
    assert desk.background.taught.labels[0] == "tea"
    give(desk, "p0", kind="unknown", label=None)
    assert 0 not in desk.background.taught.labels


def test_everybody_is_asked_something_else(desk):
    asked = [desk.next(f"session {number}", "Ann")["node"]["id"] for number in range(60)]
    assert len(set(asked)) == 60
    assert desk.next("late", "Bo") is None


def test_who_skips_gets_the_node_in_the_end(desk):
    skipped = desk.next("one", "Ann")["node"]["id"]
    give(desk, skipped, kind="skip", label=None)
    seen = []
    while (question := desk.next("one", "Ann"))["node"]["id"] != skipped:
        seen.append(question["node"]["id"])
        give(desk, seen[-1], label_of(seen[-1]))
    assert len(set(seen)) == 59


def test_chance_asks_one_in_five_and_hides_the_guess(desk):
    hows = []
    for _ in range(42):
        question = desk.next("one", "Ann")
        hows.append(question["how"])
        assert question["hidden"] == (question["how"] == RANDOM)
        assert (question["guess"] is None) == (question["hidden"] or len(hows) < 3)
        if question["hidden"]:
            assert question["around"]["nodes"][0][3] is None
        # Labels of two classes, so that there is a model from the third question on.
        label = ("art", "law", "tea")[len(hows) - 1] if len(hows) < 4 else label_of(question["node"]["id"])
        give(desk, question["node"]["id"], label)
    asked = hows[2:]
    assert asked.count(RANDOM) == pytest.approx(len(asked) / EVERY, abs=1)


def test_the_estimate_is_of_what_chance_asked():
    def told(number, how, guess, label="x"):
        return Answer(str(number), "Ann", "s", f"n{number}", "label", label, how=how, guess=guess, sure=0.5)

    asked = [told(0, CHOSEN, None)]
    asked += [told(1 + number, RANDOM, "x" if number % 4 else "y") for number in range(20)]
    asked += [told(21 + number, CHOSEN, "y") for number in range(30)]
    found = progress(asked, opinions(asked))
    assert (found["right"], found["checked"]) == (15, 20)
    assert found["now"] == (pytest.approx(16 / 22), *wilson_interval(0.75, 20))
    assert found["asked"][-1] == (51, pytest.approx(15 / 50))
    # One wrong guess is no proof that all are wrong, nor are fifty right ones that none is.
    assert found["curve"][0][:2] == (2, pytest.approx(1 / 3))
    more = [told(100 + number, RANDOM, "x") for number in range(WINDOW)]
    assert progress([*asked, *more], opinions([*asked, *more]))["now"][0] == pytest.approx(51 / 52)


def test_a_correction_keeps_the_guess_before_the_first_answer(desk):
    for node in ("p0", "p1", "p2"):
        give(desk, node, label_of(node))
    question = desk.next("one", "Ann")
    node = question["node"]["id"]
    guess = give(desk, node, "art").guess
    assert guess is not None
    corrected = give(desk, node, "tea")
    assert (corrected.guess, corrected.how) == (guess, CHOSEN)
    assert desk.opinions()[node].label == "tea"
    assert len([row for row in desk.project.history() if row["node"] == node]) == 2


def test_undo_asks_again(desk):
    node = desk.next("one", "Ann")["node"]["id"]
    give(desk, node, "art")
    assert desk.undo("one")["node"]["id"] == node
    assert desk.next("one", "Ann")["node"]["id"] == node
    assert node not in desk.opinions()
    assert desk.undo("one") is None


def test_unknown_classes_and_nodes_are_refused(desk):
    with pytest.raises(InputError, match=r"'jazz'.*Add it to the classes"):
        give(desk, "p0", "jazz")
    with pytest.raises(InputError, match="2 problems"):
        give(desk, "nobody", "jazz")
    desk.add_class("jazz")
    assert give(desk, "p0", "jazz").label == "jazz"
    with pytest.raises(InputError, match="class"):
        desk.add_class("")


def test_disagreement_is_shown(desk):
    give(desk, "p0", "art")
    give(desk, "p0", "tea", "two", "Bo", note="sure")
    give(desk, "p1", "law")
    assert desk.state()["disputed"] == 1
    (row,) = desk.answers(0, "disputed")["rows"]
    assert [(one["person"], one["label"]) for one in row["answers"]] == [("Ann", "art"), ("Bo", "tea")]
    assert desk.answers(0, "")["total"] == 2
    assert [one["person"] for one in desk.look("p0")["answers"]] == ["Ann", "Bo"]


def test_a_label_that_others_contradict_is_looked_at_again(desk):
    for node, label in (("p0", "art"), ("p1", "law"), ("p3", "tea"), ("p4", "art")):
        give(desk, node, label)
    assert desk.state()["doubted"] == 2
    rows = desk.answers(0, "doubted")["rows"]
    assert [(one["node"], one["label"], one["instead"]) for one in rows] == [("p3", "tea", "art"), ("p4", "art", "law")]
    told = [(one["instead"], one["wrong"]) for one in desk.answers(0, "")["rows"]]
    assert told == [("law", 0.75), ("art", 0.75), (None, None), (None, None)]
    give(desk, "p3", "tea")  # The same again: they mean it.
    assert list(desk.doubted()) == ["p4"]
    give(desk, "p4", "law")
    assert not desk.doubted()


def test_labels_of_the_table_may_be_doubted_too(tmp_path):
    wrong = ["tea", "law", "tea"] + [None] * 57
    desk = desk_of(tmp_path, labelled=3, group=wrong)
    (row,) = desk.answers(0, "doubted")["rows"]
    assert (row["node"], row["label"], row["instead"], row["answers"]) == ("p0", "tea", "art", [])
    give(desk, "p0", "tea")
    assert not desk.doubted()


def test_a_project_goes_on_where_it_ended(tmp_path, desk):
    give(desk, "p0", "art")
    waiting = desk.next("one", "Ann")["node"]["id"]
    again = desk_of(tmp_path, AtOnce(Counting(60)))
    assert again.next("one", "Ann")["node"]["id"] == waiting
    assert again.next("two", "Bo")["node"]["id"] not in (waiting, "p0")
    again.project.close()


def wait(background, done):
    end = time.time() + 120
    while not done() and time.time() < end:
        time.sleep(0.02)
    assert done(), (background.status, background.trouble)


@pytest.mark.slow
def test_a_learner_that_fails_or_dies_is_replaced(tmp_path):
    others = set(active_children())
    background = Background(Failing, tmp_path, "quick")
    try:
        background.teach(Known({0: "x"}))
        background.teach(Known({0: "x", 1: "fail"}))
        wait(background, lambda: background.status == "failed")
        assert background.trouble == "ValueError: cannot"
        background.teach(Known({0: "x", 1: "die"}))
        wait(background, lambda: "memory" in background.trouble)
        background.teach(Known({0: "x", 1: "y"}))
        wait(background, lambda: background.beliefs is not None)
        assert background.beliefs.classes == ["x", "y"]
        assert background.why(0).result(60).neighbours == [(0, 0.5)]
    finally:
        background.close()
    assert not set(active_children()) - others


def test_a_folder_of_answers_is_shared_by_processes(tmp_path, desk):
    with Project.open(tmp_path / "project") as other:
        other.add(Answer("r", "Bo", "b", "p5", "label", "tea"))
    assert desk.known().labels == {5: "tea"}


def test_neighbours_by_type_of_edge_and_their_kinds(tmp_path, desk):
    assert desk.look("p0")["around"]["types"] == []
    nodes = write(tmp_path / "typed.csv", {"id": list("abcxy"), "kind": [*["film"] * 3, *["person"] * 2]})
    links = {"source": list("aabca"), "target": list("xyxxb"), "type": ["by", "by", "by", "with", "like"]}
    edges = write(tmp_path / "links.csv", links)
    shown = ShownColumns("group")
    with warnings.catch_warnings(action="ignore"):
        graph = read_unlabelled(nodes, edges, shown, (), Problems(), id="id")
    records = Records(graph, shown, tmp_path)
    project = Project.open(tmp_path / "typed")
    typed = Desk(project, records, AtOnce(Counting(records.size)))
    groups = {type: (many, ends) for type, many, ends in typed.look("a")["around"]["types"]}
    assert {type: [one[0] for one in ends] for type, (_, ends) in groups.items()} == {"by": ["x", "y"], "like": ["b"]}
    assert {one[-1] for _, ends in groups.values() for one in ends} == {"person", "film"}
    assert {type: many for type, many, _ in typed.look("x")["around"]["types"]} == {"by (back)": 2, "with (back)": 1}
    project.close()
