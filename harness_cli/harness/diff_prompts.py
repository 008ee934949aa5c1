"""What changed between two prompt pipelines: blocks, their order, conditions, constraints."""

from collections.abc import Iterator
from typing import Any

from harness_cli.harness.diff_text import diff_text
from harness_cli.harness.parts import pipeline_path
from harness_cli.harness.templates import path_of
from harness_cli.records.harness import HarnessState, Pipeline

Row = tuple[str, str, str, str, Any, Any, str]
"""(module, name, what, action, before, after, path)."""


def diff_prompts(a: HarnessState, b: HarnessState) -> Iterator[Row]:
    """Changes of pipelines, constraints and the text of blocks."""
    for variant in sorted({*a.pipelines, *b.pipelines}):
        old, new = a.pipelines.get(variant), b.pipelines.get(variant)
        path, name = pipeline_path(variant), f"pipeline {variant}"
        if old is None or new is None:
            yield "prompt", name, "", "added" if new else "removed", None, None, path
        else:
            yield from _pipeline(name, path, old, new)
    yield from _texts(a.blocks, b.blocks)


def _pipeline(name: str, path: str, old: Pipeline, new: Pipeline) -> Iterator[Row]:
    before = {block.name: block for block in old.blocks}
    after = {block.name: block for block in new.blocks}
    for block in [*before, *(n for n in after if n not in before)]:
        if block not in after or block not in before:
            action = "added" if block in after else "removed"
            yield "prompt", name, f"block {block}", action, None, None, path
            continue
        for field in ("when", "role"):
            was, now = getattr(before[block], field), getattr(after[block], field)
            if was != now:
                yield "prompt", name, f"block {block}: {field}", "changed", was, now, path
    shared = [n for n in after if n in before]
    if shared != [n for n in before if n in after]:
        yield "prompt", name, "order of blocks", "moved", list(before), list(after), path
    yield from _constraints(name, path, old, new)


def _constraints(name: str, path: str, old: Pipeline, new: Pipeline) -> Iterator[Row]:
    for key in sorted({*old.constraints, *new.constraints}):
        was, now = old.constraints.get(key), new.constraints.get(key)
        what = f"constraint {key}"
        if was is None:
            yield "prompt", name, what, "added", None, now.value if now else None, path
        elif now is None:
            yield "prompt", name, what, "removed", was.value, None, path
        else:
            for field in ("value", "range", "unit"):
                before, after = getattr(was, field), getattr(now, field)
                if before != after:
                    yield "prompt", name, f"{what}: {field}", "changed", before, after, path


def _texts(old: dict[str, str], new: dict[str, str]) -> Iterator[Row]:
    for name in sorted({*old, *new}):
        path = path_of(name)
        if name not in old:
            yield "prompt", f"block {name}", "", "added", None, new[name], path
        elif name not in new:
            yield "prompt", f"block {name}", "", "removed", old[name], None, path
        elif old[name] != new[name]:
            for found in diff_text(old[name], new[name]):
                what = f"{found.section}: {found.unit}" if found.section else found.unit
                yield (
                    "prompt", f"block {name}", what, found.action, found.before, found.after, path
                )  # fmt: skip
