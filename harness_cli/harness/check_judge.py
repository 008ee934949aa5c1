"""What a judge's harness needs beside what every harness needs."""

from collections.abc import Iterator

from harness_cli.harness.findings import Finding
from harness_cli.harness.parts import Parts, pipeline_path

ANSWER = "answer"
"""Operation of a built-in tool whose call is the verdict."""


def check_judge(parts: Parts) -> Iterator[Finding]:
    """A tool to answer by under every pipeline, and a prompt that leaves the case its place."""
    for variant, pipeline in parts.pipelines.items():
        path = pipeline_path(variant)
        for index, block in enumerate(pipeline.blocks):
            if block.role == "user":
                yield parts.finding(
                    path,
                    f"$.blocks[{index}]",
                    "judge/case",
                    f"`{block.name}` has `role: user`, where the case stands that is judged",
                    fix="make it a system block",
                )
        if not _answers(parts, variant) and not _unread(parts):
            yield parts.finding(
                path,
                "$.blocks",
                "judge/answer",
                f"under `{variant}` no tool takes the verdict: every vote would be unscored",
                fix="add one with `_meta: {harness.executor: builtin, harness.operation: answer}`",
            )


def _answers(parts: Parts, variant: str) -> bool:
    return any(
        tool.executor == "builtin"
        and tool.operation == ANSWER
        and tool.meta.get("harness.pipeline", variant) == variant
        for tool in parts.tools.values()
    )


def _unread(parts: Parts) -> bool:
    """A tool file that could not be read may be the one that is missed."""
    return any(f.path.startswith("tools/") and f.level == "error" for f in parts.findings)
