"""Which node a person is asked about next, what they are shown, and what becomes of their answer."""

from __future__ import annotations

import threading
import time
from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from g3nn.base.errors import Problems, refuse
from g3nn.labelling.background import Background
from g3nn.labelling.learner import Beliefs, Doubt, Doubts, Why
from g3nn.labelling.opinions import EVERY, Opinion, opinions, progress, told
from g3nn.labelling.project import ADD, CHOSEN, CORRECTION, LABEL, RANDOM, REMOVE, SKIP, Answer, Json, Lease, Project
from g3nn.labelling.records import Records
from g3nn.labelling.tables import Known

LEASE = 300.0
"""Seconds for which a node is one session's own. A page that is open renews it."""

DISPUTED, DOUBTED = "disputed", "doubted"
"""Which answers are listed: those about which people disagree, and those that other labels contradict."""

MOST_NAMED, MOST_KEYS = 6, 9
_LISTED = 12
_TRIES = 60


class Desk:
    """A project at work: store, tables and learner together. Threads may share it."""

    def __init__(self, project: Project, records: Records, background: Background, seed: int = 0) -> None:
        self.project, self.records, self.background = project, records, background
        self._rng, self._lock = np.random.default_rng([seed, time.time_ns()]), threading.Lock()
        codes, names = records.given
        self._given = {int(row): names[codes[row]] for row in np.flatnonzero(codes >= 0)}
        self._labelled = codes >= 0
        project.add_classes(names)
        self.teach()

    # What is known

    def opinions(self) -> dict[str, Opinion]:
        return opinions(self.project.current())

    def known(self) -> Known:
        """The labels of the table and of people; where they differ, those of people."""
        labels, records = dict(self._given), self.records
        for opinion in self.opinions().values():
            row = records.row(opinion.node)
            if row is not None:
                labels.pop(row, None)
                if opinion.label is not None:
                    labels[row] = opinion.label
        pairs: dict[str, list[tuple[int, int]]] = {REMOVE: [], ADD: []}
        for (source, target), verdict in self.project.verdicts().items():
            ends = records.row(source), records.row(target)
            if verdict in pairs and ends[0] is not None and ends[1] is not None:
                pairs[verdict].append((ends[0], ends[1]))
        return Known(labels, tuple(pairs[REMOVE]), tuple(pairs[ADD]))

    def teach(self) -> None:
        self.background.teach(self.known())

    # Questions

    def next(self, session: str, person: str) -> Json | None:
        """What this session is asked, as a page shows it: what it was asked before if there was no answer yet, else a
        node that no other session is asked about. None if nothing is left."""
        with self._lock:
            lease = self.renew(session) or self._leased(session, person)
        return None if lease is None else self._shown(self._row(lease.node), lease.how, asked=True)

    def _row(self, node: str) -> int:
        row = self.records.row(node)
        assert row is not None
        return row

    def renew(self, session: str) -> Lease | None:
        """A page that shows a question is still open."""
        return self.project.renew(session, time.time() + LEASE)

    def _leased(self, session: str, person: str) -> Lease | None:
        beliefs = self.background.beliefs
        how = RANDOM if beliefs is not None and self._by_chance() else CHOSEN
        for row in self._candidates(person, beliefs, how):
            guess = (None, None) if beliefs is None else beliefs.guess(row)
            lease = Lease(self.records.id(row), session, time.time() + LEASE, how, *guess)
            if self.project.lease(lease):
                return lease
        return None

    def _done(self, person: str) -> tuple[np.ndarray, list[int]]:
        """Which rows are answered or being asked about, and the rows that this person skipped."""
        done, current = self._labelled.copy(), self.project.current()
        done[self.records.rows([one.node for one in current if one.kind != SKIP])] = True
        done[self.records.rows([one.node for one in self.project.leased()])] = True
        own = [one.node for one in current if one.kind == SKIP and one.person == person]
        skipped = [row for row in self.records.rows(own).tolist() if not done[row]]
        done[skipped] = True
        return done, skipped

    def _by_chance(self) -> bool:
        """Whether it is time for a question put by chance, those that are being asked counted too."""
        asked: list[Answer | Lease] = [*self.project.current(), *self.project.leased()]
        hows = Counter(one.how for one in asked if one.guess is not None)
        return (EVERY - 1) * (hows[RANDOM] + 1) <= hows[CHOSEN]

    def _candidates(self, person: str, beliefs: Beliefs | None, how: str) -> Iterable[int]:
        """Rows to ask about, the best first; at the end those that this person skipped."""
        done, skipped = self._done(person)
        if how == CHOSEN and beliefs is not None:
            yield from beliefs.order[~done[beliefs.order]].tolist()
        elif how == CHOSEN:
            # Before a model can be fitted, away from rows that are done, so that labels cover the graph.
            yield from (row for row in self._drawn(done) if not done[self.records.neighbours(row, 200)].any())
        yield from self._drawn(done)
        yield from self._rng.permutation(np.flatnonzero(~done)).tolist()
        yield from skipped

    def _drawn(self, done: np.ndarray) -> list[int]:
        """A few random rows that are not done: quicker than to shuffle all."""
        tries = self._rng.integers(len(done), size=_TRIES)
        return list(tries[~done[tries]].tolist())

    def _shown(self, row: int, how: str, asked: bool = False) -> Json:
        """A node with its neighbourhood, and the guess, which is hidden in a question put by chance."""
        beliefs, said = self.background.beliefs, self.opinions()
        hidden = asked and how == RANDOM
        opinion = said.get(self.records.id(row))
        return {
            "node": self.records.record(row),
            "row": row,
            "how": how,
            "hidden": hidden,
            "guess": None if beliefs is None or hidden else _bars(beliefs, row),
            "learned_from": None if beliefs is None else beliefs.learned_from,
            "around": self._around(row, said, beliefs, hidden),
            "given": self._given.get(row),
            "answers": [] if opinion is None else [told(one) for one in opinion.answers],
        }

    def _around(self, row: int, said: dict[str, Opinion], beliefs: Beliefs | None, hidden: bool) -> Json:
        """The neighbourhood: nodes with labels and predictions, edges, and the labels among neighbours. types: of edges
        with their number, and the first nodes at these with their kinds."""
        records, labels = self.records, self._labels(said)
        near = records.neighbours(row).tolist()
        labelled = [one for one in near if one in labels]
        nodes, pairs = records.surroundings(row, labelled)

        def known(one: int) -> list[object]:
            guess = (None, None) if beliefs is None or (hidden and one == row) else beliefs.guess(one)
            return [*records.named(one), labels.get(one), *guess]

        groups = []
        for type, ends in records.by_type(row).items():
            first = sorted(ends, key=lambda one: one not in labels)[:MOST_NAMED]
            groups.append([type, len(ends), [[*known(one), records.kind(one)] for one in first]])
        return {
            "nodes": list(map(known, nodes)),
            "types": groups,
            "edges": pairs,
            "degree": len(near),
            "labels": Counter(labels[one] for one in labelled).most_common(MOST_NAMED),
            "directed": records.graph.directed,
        }

    def _labels(self, said: dict[str, Opinion]) -> Mapping[int, str]:
        labels = {self.records.row(one.node): one.label for one in said.values() if one.label is not None}
        return ChainMap({row: label for row, label in labels.items() if row is not None}, self._given)

    def look(self, node: str) -> Json | None:
        """A node that a person goes to by themselves; None if there is none."""
        row = self.records.row(node)
        return None if row is None else self._shown(row, CORRECTION)

    def reasons(self, why: Why) -> Json:
        """As a page shows them."""
        neighbours = [[*self.records.named(row), change] for row, change in why.neighbours]
        return {**vars(why), "neighbours": neighbours}

    # Answers

    def answer(self, given: Answer) -> tuple[Answer, bool]:
        """Onto the disk, with how the person came to the node and what was guessed. Whether it was an answer to a
        question, as opposed to a correction."""
        with Problems() as problems:
            self._check_node("node", given.node, problems)
            if given.kind == LABEL and given.label not in self.project.classes():
                problems.add("label", repr(given.label), "one of the classes", "Add it to the classes first.")
        session, person = (given.node, given.session), (given.node, given.person)
        lease = next((one for one in self.project.leased() if (one.node, one.session) == session), None)
        before = next((one for one in self.project.current() if (one.node, one.person) == person), None)
        found = lease or before
        how, guess, sure = (CORRECTION, None, None) if found is None else (found.how, found.guess, found.sure)
        answer = self.project.add(replace(given, how=how, guess=guess, sure=sure))
        if answer.kind != SKIP:
            self.teach()
        return answer, lease is not None

    def _check_node(self, argument: str, node: str, problems: Problems) -> None:
        if self.records.row(node) is None:
            problems.add(argument, repr(node), "the id of a node of the table")

    def undo(self, session: str) -> Json | None:
        """Take back the last answer of a session and ask again; None if there is none."""
        last = self.project.undo(session)
        if last is None:
            return None
        # A skip or a question whose guess was shown meanwhile is asked again as it was.
        self.project.lease(Lease(last.node, session, time.time() + LEASE, last.how, last.guess, last.sure))
        self.teach()
        return {**self._shown(self._row(last.node), last.how), "undone": told(last)}

    def add_class(self, name: str) -> None:
        if not 1 <= len(name) <= 200:
            refuse("class", repr(name[:60]), "a name of 1 to 200 letters")
        self.project.add_classes([name])

    # Lists

    def answers(self, start: int, only: str) -> Json:
        """Answered nodes, the last ones first, all or those where people disagree; or nodes to look at again."""
        said, doubted = self.opinions(), self.doubted()
        rows = sorted(said.values(), key=lambda one: -max(answer.seq for answer in one.answers))
        if only == DISPUTED:
            rows = [one for one in rows if one.disagree]
        elif only == DOUBTED:
            rows = [said[node] if node in said else Opinion(node, label, ()) for node, (label, *_) in doubted.items()]
        found = [
            {
                "node": one.node,
                "title": one.node if (row := self.records.row(one.node)) is None else self.records.title(row),
                "label": one.label,
                "disagree": one.disagree,
                "instead": doubted.get(one.node, (None, None, None))[1],
                "wrong": doubted.get(one.node, (None, None, None))[2],
                "answers": [told(answer) for answer in one.answers],
            }
            for one in rows[start : start + _LISTED]
        ]
        return {"total": len(rows), "start": start, "size": _LISTED, "rows": found}

    def doubted(self) -> dict[str, Doubt]:
        """Nodes with a label that others contradict, what these say instead, and how probably it is wrong; the most
        doubtful first. A label given twice is no longer flagged."""
        beliefs, votes, found = self.background.beliefs, self.project.votes(), dict[str, Doubt]()
        labels = self._labels(self.opinions())
        for row, doubt in ({} if beliefs is None else beliefs.doubted).items():
            node, label = self.records.id(row), doubt[0]
            times = votes.get((node, label), 0) + (self._given.get(row) == label)
            if labels.get(row) == label and times < 2:
                found[node] = doubt
        return found

    def unjudged(self, doubts: Doubts) -> Json:
        """Edges and pairs that nobody has judged yet."""
        judged = {frozenset(pair) for pair in self.project.verdicts()}
        found: dict[str, list[object]] = {kind: [] for kind in doubts}
        for kind, pairs in doubts.items():
            for one, other, probability in pairs:
                source, target = self.records.named(one), self.records.named(other)
                if frozenset((source[0], target[0])) not in judged:
                    found[kind].append({"source": source, "target": target, "probability": probability})
        return {**found}

    def judge(self, request: str, person: str, source: str, target: str, verdict: str) -> None:
        with Problems() as problems:
            for end in (source, target):
                self._check_node("edge", end, problems)
        self.project.judge(request, person, source, target, verdict)
        self.teach()

    def state(self) -> Json:
        """What the head of the page says."""
        said, background = self.opinions(), self.background
        people = Counter(one.person for one in self.project.current() if one.kind != SKIP)
        return {
            "classes": self.project.classes(),
            "counts": Counter(one.label for one in said.values() if one.label),
            "answered": len(said),
            "labels": sum(one.label is not None for one in said.values()),
            "disputed": sum(one.disagree for one in said.values()),
            "doubted": len(self.doubted()),
            "given": len(self._given),
            "nodes": self.records.size,
            "people": people.most_common(),
            "learner": {"status": background.status, "trouble": background.trouble},
            "learned_from": None if background.beliefs is None else background.beliefs.learned_from,
            "progress": progress(self.project.current(), said),
            "result": background.result(self.known()),
        }


def _bars(beliefs: Beliefs, row: int) -> list[tuple[str, float]]:
    """The likeliest classes with their probabilities, one for each key of a digit."""
    own = beliefs.probabilities[row]
    return [(beliefs.classes[k], float(own[k])) for k in np.argsort(-own, kind="stable")[:MOST_KEYS]]
