"""The prompt pipeline: blocks that exist, conditions and templates that hold for every request."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from jinja2 import nodes

from harness_cli.errors import BadFile, UsageError
from harness_cli.harness.conditions import compiled
from harness_cli.harness.findings import Finding, of_error
from harness_cli.harness.parts import Parts, pipeline_path
from harness_cli.harness.samples import REQUESTS, WORLD
from harness_cli.harness.templates import Compiled, compile_block, environment, path_of
from harness_cli.harness.views import REQUEST, VARIABLES, World, fixed_values, request_view
from harness_cli.records.harness import HarnessState, Pipeline


def check_prompts(parts: Parts, *, judge: bool = False) -> Iterator[Finding]:
    """What is wrong with pipelines, blocks and constraints."""
    if "default" not in parts.pipelines and pipeline_path("default") not in parts.files:
        yield Finding(
            path=pipeline_path("default"),
            rule="pipeline/missing",
            message="the harness has no prompt pipeline",
            fix="list the blocks of `prompts/blocks/` in it",
        )
    made: dict[str, Compiled] = {}
    env = environment(parts.blocks)
    for name, source in parts.blocks.items():
        try:
            block = compile_block(env, name, source)
        except BadFile as exc:
            yield of_error(exc, path_of(name), "block/template")
            continue
        if not block.unknown:
            made[name] = block
        for word, line in block.unknown:
            yield Finding(
                path=path_of(name),
                line=line,
                rule="block/variable",
                message=f"no variable `{word}`",
                fix=f"known: {', '.join(VARIABLES)}",
            )
    for variant, pipeline in parts.pipelines.items():
        yield from _blocks(parts, pipeline_path(variant), pipeline, judge)
        yield from _constraints(parts, pipeline_path(variant), pipeline)
        yield from _renders(parts, pipeline, made)
    yield from _unused(parts)


def _blocks(parts: Parts, path: str, pipeline: Pipeline, judge: bool) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, block in enumerate(pipeline.blocks):
        at = f"$.blocks[{index}]"
        if block.name not in parts.blocks:
            message = f"no block `{block.name}`"
            fix = f"write `{path_of(block.name)}`"
            yield parts.finding(path, f"{at}.name", "pipeline/block", message, fix=fix)
        if block.name in seen:
            message = f"the block `{block.name}` stands twice"
            yield parts.finding(path, f"{at}.name", "pipeline/block", message, fix="remove one")
        seen.add(block.name)
        if block.when is not None:
            try:
                compiled(block.when)
            except UsageError as exc:
                yield parts.finding(
                    path, f"{at}.when", "pipeline/condition", str(exc), fix=exc.hint
                )
    if not judge and not any(block.role == "user" for block in pipeline.blocks):
        yield parts.finding(
            path,
            "$.blocks",
            "pipeline/user",
            "no block has `role: user`: comments are sent as they are",
            level="warning",
            fix="add a block with `role: user` that shows `request.comments`",
        )


def _constraints(parts: Parts, path: str, pipeline: Pipeline) -> Iterator[Finding]:
    for name, constraint in pipeline.constraints.items():
        low, high = constraint.range
        at = f"$.constraints.{name}"
        if low > high:
            message = f"`{name}`: the range {low}–{high} is empty"
            yield parts.finding(path, at, "pipeline/constraint", message, fix="[least, most]")
        elif not low <= constraint.value <= high:
            yield parts.finding(
                path,
                at,
                "pipeline/constraint",
                f"`{name}`: {constraint.value} lies outside {low}–{high}",
                fix="move the value or widen the range",
            )


def _renders(parts: Parts, pipeline: Pipeline, made: Mapping[str, Compiled]) -> Iterator[Finding]:
    """Each block of a pipeline under every sample request that shows it."""
    skills = tuple(parts.skills.values())
    fixed = fixed_values(HarnessState(id="", skills=skills), pipeline)
    for block in pipeline.blocks:
        if block.name not in made:
            continue
        yield from _attributes(block.name, parts.blocks[block.name], pipeline)
        # What a block does not read makes no difference to it.
        read = {k: v for k, v in fixed.items() if made[block.name].needs & _FROM[k]}
        said = _fault(made[block.name], block.when, msgspec.json.encode(read))
        if said is not None:
            yield of_error(said, path_of(block.name), "block/render")


_FROM = {"skills": frozenset({"skills", "loaded"}), "constraints": frozenset({"constraints"})}
"""Values that a state determines → the variables of a block that show them."""


@lru_cache(maxsize=1024)
def _fault(block: Compiled, when: str | None, read: bytes) -> BadFile | None:
    """What the first of the sample requests that does not render meets; kept for the same block
    with the same values, so a block that many states share is rendered once."""
    fixed = msgspec.json.decode(read)
    loaded = [{**s, "body": "…"} for s in fixed.get("skills", ())[:1]]
    for values in _samples(when):
        try:
            block.render({**values, **fixed, "loaded": loaded})
        except BadFile as exc:
            return exc
    return None


@lru_cache(maxsize=64)
def _samples(when: str | None) -> tuple[dict[str, Any], ...]:
    """The values of every sample request that shows a block of this condition."""
    world = World(WORLD)
    return tuple(
        {
            "request": request_view(request),
            "products": world.products(request),
            "room": world.room(request),
            "today": world.today,
            "instructions": ["…"],
        }
        for request in REQUESTS
        if _shown(when, request)
    )


def _shown(when: str | None, request: object) -> bool:
    try:
        return when is None or compiled(when)(request)  # type: ignore[arg-type]
    except UsageError:
        return False


def _attributes(name: str, source: str, pipeline: Pipeline) -> Iterator[Finding]:
    """Fields that do not exist, also in branches that no sample reaches."""
    known = {"request": REQUEST, "constraints": tuple(pipeline.constraints)}
    for variable, attribute, line in _read_fields(source):
        fields = known.get(variable)
        if fields is not None and attribute not in fields:
            yield Finding(
                path=path_of(name),
                line=line,
                rule="block/variable",
                message=f"`{variable}` has no `{attribute}`",
                fix=f"known: {', '.join(fields) or 'none'}",
            )


@lru_cache(maxsize=512)
def _read_fields(source: str) -> tuple[tuple[str, str, int], ...]:
    """Every `variable.attribute` of a block, and its line."""
    found = environment({}).parse(source).find_all(nodes.Getattr)
    return tuple((n.node.name, n.attr, n.lineno) for n in found if isinstance(n.node, nodes.Name))


def _unused(parts: Parts) -> Iterator[Finding]:
    used = {block.name for p in parts.pipelines.values() for block in p.blocks}
    sources = "\n".join(parts.blocks.values())
    for name in sorted(parts.blocks.keys() - used):
        if f'"{name}"' not in sources and f"'{name}'" not in sources:
            yield Finding(
                path=path_of(name),
                level="warning",
                rule="block/unused",
                message="no pipeline shows this block",
                fix="list it in `prompts/pipeline.yaml` or remove it",
            )
