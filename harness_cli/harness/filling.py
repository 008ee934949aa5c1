"""`{{name}}` in texts of imported test files: the sandbox of prompt blocks, with less in it."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from jinja2 import ChainableUndefined, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables

from harness_cli.errors import BadFile
from harness_cli.harness.templates import environment

LONGEST = 1_000_000
"""Characters of a filled text."""
_LOOPS = 2
"""Loops within each other: three over long lists would never end."""


class Filling:
    """Fills texts; remembers which names had no value (they are left empty, as Nunjucks does)."""

    def __init__(self) -> None:
        made = environment({})
        made.undefined = ChainableUndefined
        made.trim_blocks = made.lstrip_blocks = False
        made.globals = {}
        made.filters |= {"dump": _dump, "pairs": _pairs}
        made.unsafe_undefined = _unsafe  # type: ignore[method-assign]
        self._environment = made
        self.missing: set[str] = set()

    def text(self, text: str, values: Mapping[str, Any], *, where: str) -> str:
        """The text with its names filled in. Raises `BadFile` with `where` for no template."""
        if "{{" not in text and "{%" not in text:
            return text
        try:
            tree = self._environment.parse(text)
            _bounded(tree, where)
            _pairs_of_mappings(tree)
            self.missing |= find_undeclared_variables(tree) - values.keys()
            pieces, size = [], 0
            for piece in self._environment.from_string(tree).generate(dict(values)):
                size += len(piece)
                if size > LONGEST:
                    raise BadFile(f"{where}: the filled text is longer than {LONGEST:,}")
                pieces.append(piece)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as exc:
            raise BadFile(
                f"{where}: {exc}", hint="templates are filled as Jinja2 does; no code is run"
            ) from exc
        return "".join(pieces)

    def value(self, value: Any, values: Mapping[str, Any], *, where: str) -> Any:
        """Every text of plain data filled in."""
        if isinstance(value, str):
            return self.text(value, values, where=where)
        if isinstance(value, dict):
            return {k: self.value(v, values, where=where) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(v, values, where=where) for v in value]
        return value


def _unsafe(obj: Any, attribute: str) -> NoReturn:
    """An attribute that leads out of the sandbox is no empty value."""
    raise SecurityError(f"access to attribute '{attribute}' of {type(obj).__name__} is unsafe")


def _bounded(tree: nodes.Template, where: str) -> None:
    for outer in tree.find_all(nodes.For):
        inner = [n for n in outer.find_all(nodes.For) if any(True for _ in n.find_all(nodes.For))]
        if inner:
            raise BadFile(f"{where}: more than {_LOOPS} loops within each other")


def _pairs_of_mappings(tree: nodes.Template) -> None:
    """`for key, value in mapping` goes over the pairs, as it does in Nunjucks."""
    for loop in tree.find_all(nodes.For):
        if isinstance(loop.target, nodes.Tuple) and len(loop.target.items) == 2:
            loop.iter = nodes.Filter(loop.iter, "pairs", [], [], None, None)


def _pairs(value: Any) -> Any:
    return list(value.items()) if isinstance(value, Mapping) else value


def _dump(value: Any) -> str:
    """Nunjucks' name for JSON."""
    return json.dumps(value, ensure_ascii=False)
