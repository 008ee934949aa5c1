"""Tools, hooks and prompts of an augmented state against the base's."""

from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import msgspec

from harness_cli.augmentation.draft import Draft
from harness_cli.augmentation.renames import DEFAULTS
from harness_cli.augmentation.skill_text import entries, mark_of, parts
from harness_cli.augmentation.speech import unfolded
from harness_cli.augmentation.system_prompt import BLOCKS
from harness_cli.augmentation.validate_skills import Form, Originals, form_of, names_back
from harness_cli.augmentation.wording import placeless
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.harness import HarnessState, Hook, Pipeline, Tool

WORDS = ("description", "title")
"""Keys of a schema that say what something is, and decide nothing."""


def tool_faults(before: HarnessState, after: HarnessState, given: AugmentationMap) -> Iterator[str]:
    """Tools that are missing, or that take or do something else."""
    here = {tool.name: tool for tool in after.all_tools()}
    for tool in before.all_tools():
        now = here.pop(given.tools.get(tool.name, tool.name), None)
        if now is None:
            yield f"`{tool.name}` is missing"
        elif _does(now) != _does(tool):
            yield f"`{now.name}` runs as {_does(now)}, not as {_does(tool)}"
        elif now.mutates != tool.mutates or now.output_schema != tool.output_schema:
            yield f"`{now.name}` gives something else"
        elif _takes(now, {}) != _takes(tool, given.parameters.get(tool.name, {})):
            yield f"`{now.name}` takes other arguments"
    for name in here:
        yield f"`{name}` is no tool of the base"


def _does(tool: Tool) -> tuple[str, str]:
    return tool.executor, tool.operation


def _takes(tool: Tool, names: Mapping[str, str]) -> Any:
    """A schema without words, and what the executor is told for each argument."""
    schema = dict(_wordless(tool.input_schema))
    properties = {names.get(k, k): v for k, v in schema.pop("properties", {}).items()}
    required = sorted(names.get(k, k) for k in schema.pop("required", ()))
    theirs = {names.get(k, k): tool.argument_names.get(k, k) for k in tool_properties(tool)}
    return schema, properties, required, theirs


def tool_properties(tool: Tool) -> list[str]:
    """The parameters of a tool."""
    return list(tool.input_schema.get("properties", {}))


def _wordless(node: Any) -> Any:
    if isinstance(node, dict):
        kept = {k: v for k, v in node.items() if not (k in WORDS and isinstance(v, str))}
        return {k: _wordless(v) for k, v in kept.items()}
    return [_wordless(n) for n in node] if isinstance(node, list) else node


def hook_faults(before: HarnessState, after: HarnessState, given: AugmentationMap) -> Iterator[str]:
    """Hooks that are missing, or check something else."""
    here = {hook.name: hook for hook in after.hooks}
    watch = {tool.name: given.tools.get(tool.name, tool.name) for tool in before.all_tools()}
    for hook in before.hooks:
        now = here.pop(given.hooks.get(hook.name, hook.name), None)
        if now is None:
            yield f"`{hook.name}` is missing"
        elif _checks(now, {}) != _checks(hook, {**given.skills, **given.tools}):
            yield f"`{now.name}` checks something else"
        elif _watched(hook, watch) != _watched(now, {new: new for new in watch.values()}):
            yield f"`{now.name}` watches other tools"
        elif hook.action == "retry" and now.max_retries < 1 <= hook.max_retries:
            yield f"`{now.name}` allows no retry any more"
        elif ("{reason}" in hook.message) != ("{reason}" in now.message):
            yield f"`{now.name}` no longer says the reason"
    for name in here:
        yield f"`{name}` is no hook of the base"


def _watched(hook: Hook, tools: Mapping[str, str]) -> set[str]:
    """The tools that a hook's patterns choose, in the names of the state."""
    return {new for old, new in tools.items() if any(fnmatchcase(old, p) for p in hook.tools)}


def _checks(hook: Hook, names: Mapping[str, str]) -> Any:
    """What a hook looks at and when, in the names of the state."""
    checks = []
    for check in hook.checks:
        settings = msgspec.to_builtins(check.with_)
        if check.check in DEFAULTS:
            settings.setdefault(DEFAULTS[check.check], ["refuse"])
        for key in {"tools", "skills", *DEFAULTS.values()} & settings.keys():
            settings[key] = [names.get(n, n) for n in settings[key]]
        checks.append((check.check, msgspec.json.encode(settings, order="sorted")))
    return hook.event, hook.when, hook.priority, hook.command, hook.on_failure, checks


def prompt_faults(
    base: Draft, made: Draft, before: HarnessState, after: HarnessState, originals: Originals
) -> Iterator[str]:
    """Pipelines with other blocks or ranges, blocks that say something else."""
    for name, pipeline in before.pipelines.items():
        now = after.pipelines.get(name)
        if now is None:
            yield f"the pipeline `{name}` is missing"
        else:
            yield from _pipeline(name, pipeline, now)
    back = names_back(made.map)
    originals = {**originals, **_placeless_originals(base.book)}
    for path in base.texts(BLOCKS, ext=".md"):
        if path not in made.files:
            yield f"{path} is missing"
        elif _said(base.text(path), {}, {}) != _said(made.text(path), back, originals):
            yield f"{path} says something else"
    if before.fallback and not after.fallback:
        yield "the fallback prompt is missing"


def _pipeline(name: str, before: Pipeline, after: Pipeline) -> Iterator[str]:
    if Counter(before.blocks) != Counter(after.blocks):
        yield f"the pipeline `{name}` has other blocks"
    for role in ("user",):
        told = [b.name for b in before.blocks if b.role == role]
        if told != [b.name for b in after.blocks if b.role == role]:
            yield f"the pipeline `{name}` has its {role} blocks in another order"
    if before.constraints.keys() != after.constraints.keys():
        yield f"the pipeline `{name}` has other constraints"
        return
    for key, now in after.constraints.items():
        was = before.constraints[key]
        if (was.range, was.unit) != (now.range, now.unit):
            yield f"the pipeline `{name}` has another range for `{key}`"
        if not was.range[0] <= now.value <= was.range[1]:
            yield f"the pipeline `{name}` moves `{key}` to {now.value}, out of its range"


def _said(text: str, back: Mapping[str, str], originals: Originals) -> Counter[Form]:
    """The canonical forms of a block's entries and other lines, whatever their order."""
    found: Counter[Form] = Counter()
    for line in _lines(text):
        form = form_of(line, back)
        found[originals.get(form, form)] += 1
    return found


@lru_cache(maxsize=1024)
def _lines(text: str) -> tuple[str, ...]:
    """The titles, entries and paragraphs of a block, places said as the table says them."""
    found = []
    for part in parts(text, "#"):
        first, listed, behind = entries(part)
        found += [part.title, unfolded("\n".join(first)), unfolded("\n".join(behind))]
        found += [unfolded(e[len(mark_of(e)) :]) for e in listed]
    return tuple(placeless(line) for line in found if line)


def _placeless_originals(book: Mapping[str, tuple[str, ...]]) -> Originals:
    """As `Book.originals`, of texts as `_lines` reads them."""
    pairs = ((placeless(said), placeless(text)) for text, others in book.items() for said in others)
    return {form_of(said, {}): form_of(text, {}) for said, text in pairs}
