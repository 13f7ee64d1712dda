"""People who answer, correct, skip, take back and add classes, in any order and in two processes: what is kept is what
plain lists would hold."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from label_desk import SHOWN, AtOnce
from label_stub import Counting
from machines import SETTINGS
from small_tables import edge_columns, node_columns, write

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.labelling.project import Answer, Project
from g3nn.labelling.questions import Desk
from g3nn.labelling.records import Records
from g3nn.labelling.tables import read_unlabelled

PEOPLE = 8
NODES = st.sampled_from(["p0", "p1", "p2"])
WHO = {"one": "Ann", "two": "Bob", "three": "Ann"}
"""Who sits at each session. The first two share a process; the last is another page of the first person, elsewhere."""
SESSIONS = st.sampled_from(sorted(WHO))
KINDS = st.sampled_from(["label", "unknown", "skip"])
CLASSES = st.sampled_from(["art", "law", "tea", ""])


@cache
def records() -> Records:
    folder = Path(tempfile.mkdtemp())
    nodes = write(folder / "nodes.csv", node_columns(range(PEOPLE), labelled=0))
    edges = write(folder / "edges.csv", edge_columns(range(PEOPLE)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        return Records(read_unlabelled(nodes, edges, SHOWN, (), Problems(), id="id"), SHOWN, folder)


@dataclass
class Said:
    request: str
    session: str
    node: str
    kind: str
    label: str | None
    note: str
    undone: bool = False
    seq: int = 0

    @property
    def person(self) -> str:
        return WHO[self.session]

    def answer(self) -> Answer:
        return Answer(self.request, self.person, self.session, self.node, self.kind, self.label, self.note)


class Labelling(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.desks: dict[str, Desk] = {}
        self.said: list[Said] = []
        self.classes = ["art", "law"]
        self.asked: dict[str, str] = {}
        self.verdicts: dict[tuple[str, str], str] = {}
        self.judged: set[str] = set()

    def teardown(self) -> None:
        for desk in self.desks.values():
            desk.project.close()
        shutil.rmtree(self.folder)

    def desk(self, session: str) -> Desk:
        place = "elsewhere" if session == "three" else "here"
        if place not in self.desks:
            project = Project.open(self.folder / "project")
            project.add_classes(["art", "law"])
            self.desks[place] = Desk(project, records(), AtOnce(Counting(PEOPLE)))
        return self.desks[place]

    def answered(self) -> set[str]:
        return {one.node for one in self.said if not one.undone and one.kind != "skip"}

    def others_asked(self, session: str) -> set[str]:
        return {node for other, node in self.asked.items() if other != session}

    def current(self) -> list[Said]:
        last: dict[tuple[str, str], Said] = {}
        for one in (one for one in self.said if not one.undone):
            place = (one.node, one.person)
            if one.kind != "skip" or place not in last or last[place].kind == "skip":
                last[place] = one
        return sorted(last.values(), key=self.said.index)

    @rule(session=SESSIONS)
    def ask(self, session: str) -> None:
        question = self.desk(session).next(session, WHO[session])
        taken = self.answered() | self.others_asked(session)
        if session in self.asked:
            assert question is not None
            assert question["node"]["id"] == self.asked[session]
        elif question is None:
            assert len(taken) == PEOPLE
        else:
            assert question["node"]["id"] not in taken
            self.asked[session] = question["node"]["id"]

    @rule(session=SESSIONS, kind=KINDS, label=CLASSES, note=st.text(max_size=5))
    def answer(self, session: str, kind: str, label: str, note: str) -> None:
        if session in self.asked:
            self._give(session, self.asked[session], kind, label, note)

    @rule(session=SESSIONS, node=NODES, kind=KINDS, label=CLASSES, note=st.text(max_size=5))
    def say(self, session: str, node: str, kind: str, label: str, note: str) -> None:
        """Of a node that they looked up."""
        self._give(session, node, kind, label, note)

    @rule(place=st.integers(0, 3), kind=KINDS, label=CLASSES)
    def correct(self, place: int, kind: str, label: str) -> None:
        """One of the last answers, by who gave it."""
        if place < len(self.said):
            one = self.said[-1 - place]
            self._give(one.session, one.node, kind, label, one.note)

    def _give(self, session: str, node: str, kind: str, label: str, note: str) -> None:
        said = Said(f"r{len(self.said)}", session, node, kind, label if kind == "label" else None, note)
        if kind == "label" and label not in self.classes:
            with pytest.raises(InputError, match="label: got"):
                self.desk(session).answer(said.answer())
            return
        saved, asked = self.desk(session).answer(said.answer())
        assert (saved.request, asked) == (said.request, self.asked.get(session) == node)
        assert saved.seq > max((one.seq for one in self.said), default=0)
        self.said.append(replace(said, seq=saved.seq))
        if asked:
            del self.asked[session]

    @rule(place=st.integers(0))
    def send_again(self, place: int) -> None:
        """The same click, as when a connection breaks: it stays as it was, and takes nothing back."""
        if self.said:
            one = self.said[place % len(self.said)]
            saved, _ = self.desk(one.session).answer(one.answer())
            assert (saved.seq, saved.label) == (one.seq, one.label)
            if self.asked.get(one.session) == one.node:
                del self.asked[one.session]

    @rule(session=SESSIONS)
    def undo(self, session: str) -> None:
        own = [one for one in self.said if one.session == session and not one.undone]
        shown = self.desk(session).undo(session)
        if not own:
            assert shown is None
            return
        own[-1].undone = True
        node = own[-1].node
        assert shown is not None
        assert (shown["node"]["id"], shown["undone"]["label"]) == (node, own[-1].label)
        if node not in self.answered() | self.others_asked(session):
            self.asked[session] = node

    @rule(session=SESSIONS, name=CLASSES)
    def add_class(self, session: str, name: str) -> None:
        if not name:
            with pytest.raises(InputError, match="1 to 200 letters"):
                self.desk(session).add_class(name)
            return
        self.desk(session).add_class(name)
        self.classes += [] if name in self.classes else [name]

    @rule(session=SESSIONS, one=NODES, other=NODES, verdict=st.sampled_from(["keep", "remove", "add", "leave"]))
    def judge(self, session: str, one: str, other: str, verdict: str) -> None:
        request = f"v{one}{other}{verdict}{len(self.said)}"
        if request not in self.judged:
            self.judged.add(request)
            self.verdicts[one, other] = verdict
        self.desk(session).judge(request, WHO[session], one, other, verdict)

    @rule(session=SESSIONS)
    def reopen(self, session: str) -> None:
        self.desk(session).project.close()
        del self.desks["elsewhere" if session == "three" else "here"]
        self.desk(session)

    @invariant()
    def both_see_the_same(self) -> None:
        if not getattr(self, "desks", None):
            return
        for desk in self.desks.values():
            project, current = desk.project, self.current()
            assert [(row["request"], row["note"], row["undone"] is not None) for row in project.history()] == [
                (one.request, one.note, one.undone) for one in self.said
            ]
            assert [one.request for one in project.current()] == [one.request for one in current]
            assert project.classes() == self.classes
            assert project.verdicts() == self.verdicts
            assert project.votes() == Counter(
                (one.node, one.label) for one in self.said if one.label is not None and not one.undone
            )
            assert {lease.session: lease.node for lease in project.leased()} == self.asked
            self._agree(desk, current)

    def _agree(self, desk: Desk, current: list[Said]) -> None:
        expected: dict[str, str | None] = {}
        for node in self.answered():
            labels = [one.label for one in current if one.node == node and one.label is not None]
            # The latest of those that most people give.
            most = max(Counter(labels).values(), default=0)
            expected[node] = next((label for label in labels[::-1] if labels.count(label) == most), None)
        assert {node: opinion.label for node, opinion in desk.opinions().items()} == expected
        told = desk.state()
        assert (told["answered"], told["labels"]) == (len(expected), len([one for one in expected.values() if one]))
        assert dict(told["people"]) == Counter(one.person for one in current if one.kind != "skip")


def test_a_project_holds_what_lists_would():
    run_state_machine_as_test(Labelling, settings=SETTINGS)
