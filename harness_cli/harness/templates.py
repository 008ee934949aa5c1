"""Prompt blocks as sandboxed Jinja2 templates, with what each of them depends on."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness_cli.errors import BadFile
from harness_cli.harness.views import REQUEST

FOLDER = "prompts/blocks"
_ELSEWHERE = re.compile(r"\b(?:include|import|extends)\b")
_UNLOADABLE = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
EVERYTHING = frozenset({"products", "room", "skills", "loaded", "constraints", "today"}) | {
    f"request.{name}" for name in REQUEST
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A block ready to render."""

    name: str
    template: Template
    needs: frozenset[str]
    """Variables it reads; those of the request one by one (`request.comments`)."""
    unknown: tuple[tuple[str, int], ...]
    """Names it uses that no block has, and their lines."""

    def render(self, values: dict[str, Any]) -> str:
        """The block's text, stripped. Raises `BadFile` with the block's file and line."""
        try:
            return self.template.render(values).strip()
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as exc:
            raise BadFile(
                f"{path_of(self.name)}:{_line(exc, self.name)}: {exc}",
                hint="docs/prompt_variables.md lists what a block may use",
            ) from exc


def path_of(block: str) -> str:
    """The file of a block, inside the harness."""
    return f"{FOLDER}/{block}.md"


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox without what makes much out of little: `"x" * 10**9` and its like."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic on numbers; nothing on texts and lists."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if not numbers or operator == "**":
            raise SecurityError(f"`{operator}` is only for numbers in a prompt block")
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> None:  # noqa: ARG002  Jinja2's signature
        """`str.format` is no exception to `is_safe_attribute` here."""
        return

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """As Jinja2 has it, less the text methods that pad."""
        return attr not in _PADDING and super().is_safe_attribute(obj, attr, value)


_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map"})
_LONGEST = 1_000
"""The longest `range` of a block."""


def _range(*bounds: int) -> range:
    made = range(*bounds)
    if len(made) > _LONGEST:
        raise SecurityError(f"a range of {len(made)}: at most {_LONGEST} in a prompt block")
    return made


def environment(blocks: dict[str, str]) -> ImmutableSandboxedEnvironment:
    """The one environment of a set of blocks; a block may include another by its name."""

    def load(name: str) -> tuple[str, str, Any] | None:
        return (blocks[name], path_of(name), lambda: True) if name in blocks else None

    made = _Sandbox(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    made.globals = {"range": _range, "namespace": made.globals["namespace"]}
    for name in ("center", "format", "indent"):
        del made.filters[name]
    return made


def compile_block(env: ImmutableSandboxedEnvironment, name: str, source: str) -> Compiled:
    """One block. Raises `BadFile` with file and line when it is no template.

    One that takes nothing from other blocks is compiled once, in whatever harness it stands.
    """
    if _ELSEWHERE.search(source):
        return _compiled(env, name, source)
    return _alone(name, source)


@lru_cache(maxsize=512)
def _alone(name: str, source: str) -> Compiled:
    return _compiled(_bare(), name, source)


@lru_cache(maxsize=1)
def _bare() -> ImmutableSandboxedEnvironment:
    """The environment of blocks that stand alone."""
    return environment({})


def _compiled(env: ImmutableSandboxedEnvironment, name: str, source: str) -> Compiled:
    try:
        tree = env.parse(source, name, path_of(name))
        free = find_undeclared_variables(tree) - set(env.globals)
        needs = _needs(tree, free)
        unknown = tuple((word, _line_of(tree, word)) for word in sorted(free - _KNOWN))
        code = env.compile(tree, name, path_of(name))
    except TemplateError as exc:
        line = getattr(exc, "lineno", None) or 1
        raise BadFile(f"{path_of(name)}:{line}: {exc.message or exc}") from exc
    template = env.template_class.from_code(env, code, env.make_globals(None))
    return Compiled(name, template, needs, unknown)


_KNOWN = {name.partition(".")[0] for name in EVERYTHING} | {"instructions"}


def _needs(tree: nodes.Template, free: set[str]) -> frozenset[str]:
    if any(True for _ in tree.find_all(_UNLOADABLE)):
        return EVERYTHING | {"instructions"}
    needs = free & _KNOWN
    if "request" not in needs:
        return frozenset(needs)
    read = [
        node.attr
        for node in tree.find_all(nodes.Getattr)
        if isinstance(node.node, nodes.Name) and node.node.name == "request"
    ]
    whole = sum(node.name == "request" for node in tree.find_all(nodes.Name)) > len(read)
    words = REQUEST if whole else tuple(read)
    return frozenset(needs - {"request"}) | {f"request.{word}" for word in words}


def _line_of(tree: nodes.Template, word: str) -> int:
    return next((node.lineno for node in tree.find_all(nodes.Name) if node.name == word), 1)


def _line(exc: BaseException, block: str) -> int:
    """The line of the template where an error arose: Jinja puts it into the traceback."""
    line, step = 1, exc.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == path_of(block):
            line = step.tb_lineno
        step = step.tb_next
    return line
