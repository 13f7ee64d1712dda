"""Every command and every Python example of README.md, CONTRIBUTING.md and docs runs as written.

Tutorials and directives are run when the site is built, see tests/browser/test_site.py. The tables below are the only
differences from what the reader sees: limits that keep a command short, commands that are parsed but not run, and the
files and arrays the reader is supposed to have. Labels and edges are judged quickly, and panels are small. A block in
no known language, or with a program that is not known here, fails.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from markdown_it import MarkdownIt
from markdown_it.token import Token
from reader_files import bad_people, bad_shops, new_tables, places, reader_names, small_tables, stored_results
from torch.distributed.run import get_args_parser

import g3nn
import g3nn.estimator
import g3nn.queries
import g3nn.testing
from g3nn.cli import COMMANDS, command
from g3nn.graph.datasets import ALL_DATASETS

pytestmark = pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly", "few_models")

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = ("sh", "python", "text")
DIRECTIVES = ("code-cell", "command", "component", "eval-rst", "include", "options", "toctree")
"""Blocks that the build of the site reads."""
PROGRAMS = ("g3nn", "python", "make", "torchrun")
KINDS = ("likelihoods", "priors", "posteriors", "channels", "outcomes")
ENTRY_POINTS = {ALL_DATASETS.group, *(f"g3nn.{kind}" for kind in KINDS)}
"""Groups of entry points, which are not modules."""

LIMITS = {
    "g3nn train ": "--trials 2 --epochs 2",
    "g3nn fit ": "--model mlp --ensemble 1",
}
"""Added to every command that begins like this. Of an option given twice, the last value counts."""

ONLY_PARSED = {
    "g3nn label": "serves a page until somebody ends it",
    "g3nn predict labels/result": "needs what people said on that page",
    "g3nn reproduce": "trains the paper's tables: minutes to hours",
    "g3nn bench run beyond --store results/beyond.sqlite --trials 100": "trains ninety ensembles of five networks",
    "g3nn train pubmed --trials 1 --batch 20 --executor ray": "starts a cluster",
    "g3nn train karate": "needs the package of examples/extension; tests/integration/test_extension.py runs it",
    "g3nn datasets karate": "needs that package",
    "g3nn bench run noise": "trains for hours, and needs files that nobody can download",
    "g3nn bench table noise": "needs the records of that run",
    "g3nn bench report noise": "needs the records of that run",
    "g3nn bench run label-noise": "trains for hours, and needs files that nobody can download",
    "g3nn bench table label-noise": "needs the records of that run",
    "g3nn bench report label-noise": "needs the records of that run",
    "g3nn bench run scarce": "trains for hours, and needs files that nobody can download",
    "g3nn bench table scarce": "needs the records of that run",
}
"""Commands whose options are checked but which do not run, and why."""

SHORTER = {
    "epochs=300": "epochs=2",
    'likelihood="sbm"), trials=10': 'likelihood="sbm"), trials=2, epochs=2',
    "refine=True, graph_weight": "epochs=2, refine=True, graph_weight",
    "G3NNClassifier()": 'G3NNClassifier("sbm-gcn", ensemble=1, epochs=3)',
    'G3NNClassifier(effort="quick")': 'G3NNClassifier(effort="quick", ensemble=1, epochs=3)',
    'G3NNClassifier("sbm-gcn")': 'G3NNClassifier("sbm-gcn", ensemble=1, epochs=3)',
    "cv=5": "cv=2",
    "G3NNRegressor()": 'G3NNRegressor("near-gcn", ensemble=1, epochs=3)',
    'G3NNRegressor(outcome="counts")': 'G3NNRegressor("gcn", outcome="counts", ensemble=1, epochs=3)',
}
"""Replaced in Python examples."""


class Block(NamedTuple):
    document: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"

    @property
    def directive(self) -> str:
        """Its name, as in ```{toctree}; empty for a block of code."""
        found = re.match(r"\{([\w-]+)\}", self.language)
        return found[1] if found else ""


def tokens(document: Path) -> Iterator[tuple[Token, int]]:
    """All tokens of a document, inner ones too, each with the line that its paragraph or block begins in."""
    for token in MarkdownIt("commonmark").enable("table").parse(document.read_text(encoding="utf-8")):
        line = token.map[0] + 1 if token.map else 0
        yield token, line
        for child in token.children or ():
            yield child, line


def blocks(document: Path) -> Iterator[Block]:
    """Fenced and indented blocks of code. An indented one has no language."""
    for token, line in tokens(document):
        if token.type in ("fence", "code_block"):
            yield Block(document, line, token.info, token.content)


def inline(document: Path) -> Iterator[Block]:
    for token, line in tokens(document):
        if token.type == "code_inline":
            yield Block(document, line, "", token.content)


def commands(block: Block) -> list[list[str]]:
    """The words of every command, comments left out."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def begins(command: str, table: dict[str, Any]) -> Any:
    """The entry of the longest key that the command begins with; None if there is none."""
    keys = [key for key in table if f"{command} ".startswith(key)]
    return table[max(keys, key=len)] if keys else None


FILES: dict[str, Callable[[Path], None]] = {
    "g3nn fit --nodes tables/": small_tables,
    "g3nn fit --nodes homes.csv": places,
    "g3nn fit --nodes shops.csv --edges near.csv --id id --label visits --outcome counts --ensemble 0": bad_shops,
    "g3nn fit --nodes people.csv": bad_people,
    "g3nn predict ": new_tables,
    "g3nn bench ": stored_results,
}
"""Makes the files that a command needs, before it runs."""


# How a block is checked


class Parsed(Exception):  # noqa: N818 - it ends a script once its arguments have been read
    """The arguments are right."""


def check_script(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The script exists, and its own parser takes the arguments; nothing else of it runs. A tool without one runs."""
    script = ROOT / words[1]
    assert script.is_file(), f"no script {words[1]}"
    read = argparse.ArgumentParser.parse_args

    def read_and_stop(parser: argparse.ArgumentParser, *given: Any) -> None:
        read(parser, *given)
        raise Parsed

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", read_and_stop)
        patch.setattr(sys, "argv", words[1:])
        patch.syspath_prepend(str(script.parent))
        patch.chdir(ROOT)
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Parsed:
            return
    assert script.parent.name == "tools", f"{words[1]} reads no arguments"


def check_target(words: list[str]) -> None:
    assert words[1:], "make without a target"
    for target in words[1:]:
        assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.M), f"no target {target}"


def check_launcher(words: list[str]) -> None:
    """torchrun takes its own options, and g3nn those that come after its name."""
    taken = get_args_parser().parse_args(words[1:])
    assert taken.module, f"{' '.join(words)}: no -m"
    assert taken.training_script == "g3nn"
    check_options(["g3nn", *taken.training_script_args], complete=True)


def check_options(words: list[str], complete: bool) -> None:
    """The command's own parser takes the words. One that is only named in a sentence need not be complete."""
    if words[1].startswith("-"):
        assert words[1:] in (["--help"], ["--version"]), f"{' '.join(words)}: no such option"
        return
    assert words[1] in COMMANDS, f"{' '.join(words)}: no command {words[1]}"
    program = leaf = command(words[1])
    for word in words[2:]:
        if not isinstance(leaf, typer.core.TyperGroup):
            break
        assert word in leaf.commands, f"{' '.join(words)}: no command {word}"
        leaf = leaf.commands[word]
    leaf.callback = lambda **_: None
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        program.main(words[2:] if complete else [*words[2:], "--help"], prog_name="g3nn")
    assert not ended.value.code, f"{' '.join(words)}: {said.getvalue()}"


class Reader:
    """Works through a document in a folder of its own."""

    def __init__(self, folder: Path, run_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
        self.folder, self.run_command, self.monkeypatch = folder, run_command, monkeypatch
        self.names: dict[str, Any] = {}
        monkeypatch.chdir(folder)

    def read(self, block: Block, shown: str = "") -> None:
        """Check a block. `shown` is the block after it; if that is an error, the command must end with it."""
        if block.directive in DIRECTIVES:
            return
        assert block.language in LANGUAGES, f"{block}: a block must be fenced as one of {', '.join(LANGUAGES)}"
        if block.language == "sh":
            for words in commands(block):
                self.check(block, words, shown if shown.startswith("error: ") else "")
        elif block.language == "python":
            self.execute(block)
        else:
            wrong = [line for line in block.text.splitlines() if line.startswith((*PROGRAMS, "import ", ">>>"))]
            assert not wrong, f"{block}: fence commands as sh and Python as python: {wrong[0]}"

    def check(self, block: Block, words: list[str], error: str) -> None:
        command = " ".join(words)
        assert words[0] in PROGRAMS, f"{block}: this test does not know how to check {command!r}"
        if words[0] == "python":
            check_script(words, self.monkeypatch)
        elif words[0] == "make":
            check_target(words)
        elif words[0] == "torchrun":
            check_launcher(words)
        elif begins(command, ONLY_PARSED):
            check_options(words, complete=True)
        else:
            if prepare := begins(command, FILES):
                prepare(self.folder)
            limits = [] if error else shlex.split(begins(command, LIMITS) or "")
            ended = self.run_command(*words[1:], *limits)
            assert ended.code == (2 if error else 0), f"{block}: {command}\n{ended.err}"
            assert not error or ended.err == error, f"{block}: the command now says\n{ended.err}"

    def execute(self, block: Block) -> None:
        source = block.text
        for long, short in SHORTER.items():
            source = source.replace(long, short)
        if not self.names:
            self.names = reader_names()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", g3nn.base.errors.G3NNWarning)
            exec(compile("\n" * block.line + source, str(block.document), "exec"), self.names)


def title(document: Path) -> str:
    return document.relative_to(ROOT).with_suffix("").as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=title)
def test_a_document_runs_as_written(document, tmp_path, run_command, monkeypatch):
    reader = Reader(tmp_path, run_command, monkeypatch)
    all_blocks = list(blocks(document))
    fences = sum(line.lstrip().startswith("```") for line in document.read_text().splitlines())
    assert 2 * len(all_blocks) == fences, "a block was overlooked"
    for block, after in zip_longest(all_blocks, all_blocks[1:]):
        reader.read(block, after.text if after else "")


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=title)
def test_commands_in_sentences_exist(document, monkeypatch):
    for code in inline(document):
        words = code.text.split()
        if words[0] == "g3nn" and len(words) > 1:
            check_options(words, complete=False)
        elif words[0] == "python" and len(words) > 1:
            check_script(words, monkeypatch)
        elif words[0] == "make" and len(words) > 1:
            check_target(words)


@pytest.mark.parametrize("document", DOCUMENTS, ids=title)
def test_files_names_and_links_exist(document):
    missing = []
    for code in inline(document):
        for path in re.findall(r"(?:results|src|tests|benchmarks|docs|examples|tools)/[\w./*-]*\w", code.text):
            missing += [] if "NAME" in path or list(ROOT.glob(path)) else [f"{code}: {path}"]
        for name in re.findall(r"\bg3nn\.(\w+)", code.text):
            missing += [] if f"g3nn.{name}" in ENTRY_POINTS or hasattr(g3nn, name) else [f"{code}: g3nn.{name}"]
    for token, line in tokens(document):
        target = str(token.attrGet("href") or token.attrGet("src") or "")
        if target and not target.startswith(("http", "#")) and not (document.parent / target.split("#")[0]).exists():
            missing.append(f"{document.name}:{line}: {target}")
    assert missing == []


def test_every_limit_is_used():
    """An entry that matches nothing is left over from a command that has changed."""
    found = [block for document in DOCUMENTS for block in blocks(document)]
    shell = [f"{' '.join(words)} " for block in found if block.language == "sh" for words in commands(block)]
    code = "".join(block.text for block in found if block.language == "python")
    for table in (LIMITS, ONLY_PARSED, FILES):
        assert [key for key in table if not any(command.startswith(key) for command in shell)] == []
    assert [key for key in SHORTER if key not in code] == []


def test_the_page_on_trust_has_the_figures_of_its_records():
    page = (ROOT / "docs" / "trust.md").read_text()
    inputs, kills = (json.loads((ROOT / "results" / f"{name}.json").read_text()) for name in ("fuzz", "kills"))
    rows = [f"| {one['inputs']:,} | {len(one['findings'])} | {one['seconds']:,.0f} |" for one in inputs]
    rows += [
        f"| {one['kills']} | {one['hit']['while']} | {len(one['faults'])} | {one['seconds']:,.0f} |" for one in kills
    ]
    assert [row for row in rows if page.count(row) < rows.count(row)] == []
    assert len(re.findall(r"^\|.*\d.*\|$", page, re.M)) == len(rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("    g3nn datasets\n", "must be fenced"),
        ("```bash\ng3nn datasets\n```\n", "must be fenced"),
        ("```{tabs} sh\ng3nn datasets\n```\n", "must be fenced"),
        ("```sh\ncurl https://example.org\n```\n", "does not know how to check"),
        ("```sh\npython benchmarks/absent.py\n```\n", "no script"),
        ("```sh\nmake tea\n```\n", "no target tea"),
        ("```text\ng3nn datasets\n```\n", "fence commands as sh"),
        ("```sh\ng3nn datasets --frobnicate\n```\n", "No such option"),
        ("```sh\ng3nn reproduce --slowly\n```\n", "No such option"),
    ],
)
def test_a_block_that_is_not_understood_fails(text, message, tmp_path, run_command, monkeypatch):
    document = tmp_path / "page.md"
    document.write_text(text)
    (block,) = blocks(document)
    reader = Reader(tmp_path, run_command, monkeypatch)
    with pytest.raises(AssertionError, match=message):
        reader.read(block)


@pytest.mark.parametrize("arguments", ["--graphs five", "--no-such-option"])
def test_wrong_arguments_of_a_script_fail(arguments, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        check_script(["python", "benchmarks/outcomes.py", *arguments.split()], monkeypatch)
    assert "usage" in capsys.readouterr().err


def named_by(directive: str) -> set[tuple[str, ...]]:
    """The words after the name of a directive, in all pages."""
    found = [block for document in DOCUMENTS for block in blocks(document) if block.directive == directive]
    return {tuple(block.language.split()[1:]) for block in found}


def test_the_site_shows_every_component_with_its_options():
    offered = g3nn.available()
    assert named_by("component") == {(kind, name) for kind in KINDS for name in offered[kind]}
    assert named_by("options") == {(key.removesuffix("_options"),) for key in offered if key.endswith("_options")}


def test_the_site_shows_every_command():
    leaves = {name: getattr(command(name), "commands", None) for name in COMMANDS}
    assert named_by("command") == {
        words for name, parts in leaves.items() for words in ([(name, part) for part in parts] if parts else [(name,)])
    }


QUERIES = {
    "STRATEGIES",
    "AuditTables",
    "EdgeSuggestion",
    "LabelSuggestion",
    "Scores",
    "Situation",
    "Suggestion",
    "choose",
    "doubtful_edges",
    "first_nodes",
}
"""What strategies of your own need. The other names of g3nn.queries are for g3nn itself."""


def test_the_site_shows_the_public_face():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\.\. auto\w+:: ([\w.]+)", page, re.M))
    packages = {"g3nn": g3nn, "g3nn.estimator": g3nn.estimator}
    public = {name for package in packages.values() for name in package.__all__}
    assert public <= {name.rpartition(".")[2] for name in shown}
    for package, public in ((g3nn.testing, set(g3nn.testing.__all__)), (g3nn.queries, QUERIES)):
        listed = re.search(rf"automodule:: {package.__name__}\n +:members: (.*)", page)
        assert listed is not None
        assert set(listed[1].split(", ")) <= set(package.__all__)
        assert public <= {*listed[1].split(", "), *(name.rpartition(".")[2] for name in shown)}


def test_the_glossary_is_short_and_sorted():
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+?)(?=\n- |\Z)", page, re.M | re.S))
    assert len(entries) == page.count("- **") <= 30
    assert list(entries) == sorted(entries, key=str.casefold)
    sentences = {term: len(re.findall(r"\.(?=\s+[A-Z`]|\s*$)", text)) for term, text in entries.items()}
    assert {term: count for term, count in sentences.items() if count not in (1, 2)} == {}


REPLACED = {
    r"rooms?": "package, memory or temporary folder",
    r"deaf": "without the prior",
    r"believe[sd]?": "weighted, taken as given, predicted",
    r"doubt(s|ed|ing)?": "down-weighted",
    r"who (answers?|listens?|hears?|stops?|is asked)": "which model, which nodes",
    r"(hear|hears|heard)": "receives, depends on",
    r"told": "receives, given",
    r"at its word": "as true",
    r"so many (seconds|neighbours|edges|nodes|labels|epochs)": "a number, or at most k",
    r"mended": "fixed",
}
"""Words that are no longer used in pages, where models are not persons, and what to write instead."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=title)
def test_words_that_are_no_longer_used(document):
    """In sentences and tables; code and what programs print may have them."""
    inline_texts = ((token.content, line) for token, line in tokens(document) if token.type == "inline")
    prose = [(re.sub(r"`[^`]*`", "", text), line) for text, line in inline_texts]
    used = {
        f"{document.name}:{line}: {match[0]} ({better})"
        for text, line in prose
        for word, better in REPLACED.items()
        if (match := re.search(rf"\b{word}\b".replace(" ", r"\s+"), text, re.I))
    }
    assert used == set()


def test_installing_names_every_extra():
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "install.md").read_text(), re.M)
    assert set(listed) == extras
    texts = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    asked = {extra for found in re.findall(r"g3nn\[([\w,]+)\]", texts) for extra in found.split(",")}
    assert asked <= extras


def test_every_figure_has_a_command_that_draws_it():
    figures = {path.name for path in (ROOT / "docs").iterdir() if path.suffix in (".svg", ".png")}
    rows = re.findall(r"^\| `docs/([\w.-]+)` \| `(.+?)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert {name for name, _ in rows} == figures
    assert all(drawn.startswith("python ") for _, drawn in rows)


@pytest.mark.slow
def test_the_picture_of_the_house_is_that_of_the_code():
    ended = subprocess.run([sys.executable, ROOT / "tools" / "house.py", "--check"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def layers() -> tuple[str, ...]:
    return runpy.run_path(str(ROOT / "tests" / "test_layers.py"))["LAYERS"]


def test_architecture_explains_every_package(layers):
    headings = re.findall(r"^\*\*.*?\*\*", (ROOT / "docs" / "architecture.md").read_text(), re.M)
    explained = [package for heading in headings for package in re.findall(r"`(\w+)`", heading)]
    assert sorted(explained) == sorted(layers)


def test_contributing_lists_the_layers_that_the_tests_enforce(layers):
    listed = re.search(r"## Layers\n.*?```text\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    assert listed is not None
    assert listed[1].splitlines() == list(layers)
