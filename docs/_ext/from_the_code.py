"""Parts of pages that are read from the code when the site is built.

{component} likelihoods sbm    what a component says of itself, and its options
{options} objective            the options of the objective, of training, or of every model
{command} bench run            a command with its arguments and options
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

from docstrings import marked_up
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from g3nn.cli import command
from g3nn.graph.outcomes import OUTCOMES, Outcome
from g3nn.model.generative import REGISTRIES
from g3nn.training.catalogue import available

USES = {"uses_features": "features", "uses_graph": "edges", "uses_beliefs": "beliefs that come with the task"}
AT_THE_END = re.compile(r"\s*\[(?:default: )?([^\[\]]*)\]$")
"""What a help text says last: the default of an option, or that it is required."""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def options_table(options: dict[str, dict[str, Any]]) -> str:
    """What `g3nn.available()` says of some options."""
    if not options:
        return "It has no options."
    rows = [
        (
            f"`{name}`",
            f"`{one['default']}`",
            one["allowed"] + (", or one for each trial" if one["per_trial"] else ""),
            one["help"],
        )
        for name, one in options.items()
    ]
    return table(("option", "default", "allowed", "what it is"), rows)


def facts(component: type[Any]) -> str:
    """What a component declares about itself."""
    code = f"Code: `src/{component.__module__.replace('.', '/')}.py`."
    if issubclass(component, Outcome):
        return f"Unknown: {component.unknown_title}. Score: {component.score_title}. {code}"
    served = [f"`{name}`" for name, outcome in OUTCOMES.items() if issubclass(outcome, component.outcomes)]
    used = [what for declared, what in USES.items() if getattr(component, declared, False)]
    said = [f"Labels: {'all kinds' if len(served) == len(OUTCOMES) else ', '.join(served)}."]
    if used:
        said.append(f"Depends on {' and '.join(used)}.")
    if hasattr(component, "steps"):
        said.append(f"Batches: {'no' if component.steps is None else 'yes'}.")
    return " ".join([*said, code])


class Generated(SphinxDirective):
    required_arguments = 1
    optional_arguments = 2

    def text(self) -> str:
        """In Markdown."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(self.text())


class OfComponent(Generated):
    def text(self) -> str:
        kind, name = self.arguments
        component = REGISTRIES[kind.removesuffix("s")][name]
        said = marked_up(inspect.getdoc(component) or "", "")
        return "\n\n".join([said, facts(component), options_table(available()[kind][name])])


class OfOptions(Generated):
    def text(self) -> str:
        return options_table(available()[f"{self.arguments[0]}_options"])


class OfCommand(Generated):
    def text(self) -> str:
        first, *rest = self.arguments
        found = command(first)
        for word in rest:
            found = found.commands[word]
        context = found.context_class(found, info_name=" ".join(["g3nn", *self.arguments]))
        usage = " ".join(found.get_usage(context).split()).removeprefix("Usage: ")
        rows = [self._row(*one.get_help_record(context)) for one in found.params if one.name != "help"]
        said = marked_up(found.help or "", "")
        return "\n\n".join([f"```text\n{usage}\n```", said, table(("", "default", "what it is"), rows)])

    def _row(self, name: str, help: str) -> tuple[str, str, str]:
        last = AT_THE_END.search(help)
        default = last[1] if last else ""
        shown = default if default in ("", "required") else f"`{default}`"
        return f"`{name}`", shown, marked_up(AT_THE_END.sub("", help), "")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("component", OfComponent)
    app.add_directive("options", OfOptions)
    app.add_directive("command", OfCommand)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
