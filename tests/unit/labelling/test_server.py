"""The server as a page and as a stranger see it."""

from __future__ import annotations

import socket
import uuid

import pytest
from label_desk import TOKEN, app_of, desk_of, status_of
from starlette.testclient import TestClient

from g3nn.base.errors import DataError
from g3nn.labelling.records import ShownColumns
from g3nn.labelling.server import listening, page_of, policy_of

HOME = "http://127.0.0.1:8765"
NASTY = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def desk(tmp_path):
    (tmp_path / "a.png").write_bytes(b"picture")
    columns = {"name": [NASTY] * 60, "photo": ["a.png", "../a.png"] * 30}
    made = desk_of(tmp_path, shown=ShownColumns("group", text=("notes",), image="photo"), **columns)
    made.project.add_classes(["art", "law", NASTY])
    yield made
    made.project.close()


@pytest.fixture
def client(desk):
    return TestClient(app_of(desk), base_url=HOME)


def post(client, path, session="one", person="Ann", headers=None, **content):
    told = {"session": session, "person": person, "request": uuid.uuid4().hex, **content}
    return client.post(f"/{TOKEN}/api/{path}", json=told, headers=headers)


def give(client, node, label="art", **more):
    return post(client, "answer", node=node, kind="label", label=label, **more)


def test_only_the_page_itself_is_answered(client):
    assert client.get(f"/{TOKEN}/").status_code == 200
    state = f"/{TOKEN}/api/state"
    assert client.get(state).status_code == 200
    for path in ("/", "/api/state", "/wrong/api/state", "/favicon.ico", f"/{TOKEN}x/"):
        assert client.get(path).status_code == 403
    strangers = [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8765"},
        {"host": "[x"},
    ]
    for headers in strangers:
        assert client.get(state, headers=headers).status_code == 403, headers
        assert post(client, "next", headers=headers).status_code == 403, headers
    # An address may be opened from a mail, but the page alone.
    assert client.get(f"/{TOKEN}/", headers={"sec-fetch-site": "cross-site"}).status_code == 200
    for headers in ({"host": "localhost:9000"}, {"origin": HOME, "sec-fetch-site": "same-origin"}):
        assert client.get(state, headers=headers).status_code == 200


def test_what_the_page_may_do(client):
    answer = client.get(f"/{TOKEN}/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert policy.count("'sha256-") == answer.text.count("<script>") == 2
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in answer.headers
    for word in ("http://", "https://", "//cdn"):
        assert word not in answer.text.replace("http://www.w3.org", "")
    assert policy_of(page_of(NASTY, NASTY)) != ""
    assert NASTY not in page_of(NASTY, NASTY)


def test_a_question_and_an_answer(client, desk):
    question = post(client, "next").json()["question"]
    node = question["node"]
    assert node["title"] == NASTY
    found = give(client, node["id"], NASTY, note="<b>note</b>")
    assert found.headers["content-type"] == "application/json"
    assert found.json()["saved"] | {"seq": 1} == {
        **{"seq": 1, "node": node["id"], "label": NASTY, "kind": "label"},
        **{"guess": None, "sure": None, "how": "chosen", "asked": True},
    }
    assert found.json()["question"]["node"]["id"] != node["id"]
    (answer,) = desk.project.current()
    assert (answer.label, answer.note, answer.person) == (NASTY, "<b>note</b>", "Ann")
    (row,) = client.get(f"/{TOKEN}/api/answers").json()["rows"]
    assert row["label"] == NASTY


def test_two_sessions_and_undo(client):
    mine, yours = (post(client, "next", session=one).json()["question"]["node"]["id"] for one in ("a", "b"))
    assert mine != yours
    give(client, mine, session="a")
    undone = post(client, "undo", session="a").json()
    assert undone["question"]["node"]["id"] == mine
    assert undone["question"]["undone"]["label"] == "art"
    assert undone["state"]["labels"] == 0
    assert post(client, "undo", session="b").json()["question"] is None


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"kind": "label", "label": "jazz"}, 422, "jazz"),
        ({"kind": "maybe"}, 422, "kind"),
        ({"kind": "label", "label": "art", "node": "nobody"}, 422, "nobody"),
        ({"kind": "unknown", "note": "x" * 20_000}, 422, "note"),
        ({"kind": "unknown", "person": ""}, 422, "person"),
        ({"kind": "unknown", "request": 3}, 422, "request"),
        ({"kind": "unknown", "note": "x" * 300_000}, 400, "too long"),
    ],
)
def test_bad_answers_are_refused(client, desk, given, code, words):
    found = post(client, "answer", **{"node": "p0", **given})
    assert found.status_code == code
    assert words in found.json()["error"]
    assert desk.project.current() == ()


def test_what_is_no_json_is_refused(client):
    for content, kind in ((b"{", "application/json"), (b"[]", "application/json"), (b"{}", "text/plain")):
        found = client.post(f"/{TOKEN}/api/next", content=content, headers={"content-type": kind})
        assert found.status_code == 400


@pytest.mark.parametrize("path", ["", "/", "/api/state", "/api/node", "/api/why", "/api/answers", "/api/edges/", "/no"])
def test_an_address_that_is_not_ascii_is_refused(client, path):
    assert status_of(client.app, f"/{TOKEN}{path}?row=".encode() + b"\xd9") == 400


def test_an_answer_that_cannot_be_saved_is_no_answer(client, desk, monkeypatch):
    def full(_):
        raise DataError("not saved (disk is full)")

    monkeypatch.setattr(desk.project, "add", full)
    found = give(client, "p0")
    assert (found.status_code, found.json()["error"]) == (507, "not saved (disk is full)")


def test_pictures(client):
    assert client.get(f"/{TOKEN}/picture/0").content == b"picture"
    assert client.get(f"/{TOKEN}/picture/0").headers["content-type"] == "image/png"
    assert client.get(f"/{TOKEN}/picture/1").status_code == 404
    assert client.get(f"/{TOKEN}/picture/100").status_code == 404


def test_classes_reasons_edges_and_the_result(client, desk):
    assert post(client, "finish").status_code == 422
    assert post(client, "classes", name="jazz").json()["classes"][-1] == "jazz"
    give(client, "p0")
    give(client, "p1", "jazz")
    why = client.get(f"/{TOKEN}/api/why?row=0").json()["why"]
    assert why["neighbours"] == [["p3", NASTY, 0.5]]
    edges = client.get(f"/{TOKEN}/api/edges").json()["edges"]
    assert [one["source"][0] for one in edges["suspicious"]] == ["p0"]
    assert post(client, "edge", source="p0", target="p1", verdict="remove").status_code == 200
    assert post(client, "edge", source="p0", target="nobody", verdict="remove").status_code == 422
    assert client.get(f"/{TOKEN}/api/edges").json()["edges"]["suspicious"] == []
    assert desk.known().removed == ((0, 1),)
    result = post(client, "finish").json()["result"]
    assert (result["status"], result["labels"], result["changed"]) == ("written", 2, False)
    assert (desk.project.folder / "result" / "labels").read_text() == "2"
    assert give(client, "p2").json()["state"]["result"]["changed"] is True


def test_a_port_in_use_is_left_alone():
    with listening(0) as first:
        port = first.getsockname()[1]
        with listening(port) as second:
            assert second.getsockname()[0] == "127.0.0.1"
            assert second.getsockname()[1] != port
    assert isinstance(first, socket.socket)
