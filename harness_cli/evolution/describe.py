"""Facts in words: labels of clusters, root causes, the modules a person should look at."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from harness_cli.evolution.failure import Failure, Observation
from harness_cli.evolution.mining import Phrase

_LABELS = {
    "errored": "the rollout broke at the boundary `{}`",
    "unscored": "the judge gave no usable verdict",
    "tool_not_offered": "the item expects the tool `{}`, which is not offered",
    "skill_unknown": "the item expects the skill `{}`, which does not exist",
    "loop": "the same call of `{}` repeated",
    "over_refusal": "refused what should be answered",
    "missed_refusal": "answered what should be refused",
    "missed_clarification": "guessed where it should have asked back",
    "needless_clarification": "asked back what could be known",
    "partial_answer": "answered only part of what was asked",
    "wrong_language": "answered a `{}` comment in another language",
    "tool_error": "tool error `{}`",
    "malformed_call": "call of `{}` with arguments that are no JSON object",
    "hook_failed": "the hook `{}` failed to decide",
    "skill_not_loaded": "the skill `{}` was not loaded",
    "wrong_skill": "another skill than the right one was loaded (`{}`)",
    "tool_not_called": "the tool `{}` was not called",
    "wrong_arguments": "`{}` was called with other arguments than needed",
    "wrong_order": "tools called out of order (`{}`)",
    "fact_not_said": "`{}` was fetched and not said",
    "fact_not_fetched": "`{}` was not fetched",
    "no_reply": "no reply where one was due",
    "stopped": "the rollout ended by `{}`",
    "finding": "the judge found `{}`",
    "fallback": "the reply came from the `{}` route",
    "assertion": "the assertion `{}` failed",
    "hook": "the hook `{}` stepped in",
    "provider_error": "the provider failed",
    "lenient": "the judge let `{}` pass",
    "strict": "the judge objected (`{}`) where the label does not",
    "ungraded": "the judge gave no grade for {}",
    "graded": "{} graded otherwise than labelled",
}


def label_of(key: str) -> str:
    """A fact's key as a reader would say it."""
    kind, _, detail = key.partition(":")
    words = _LABELS.get(kind, kind.replace("_", " ") + (" `{}`" if detail else ""))
    return words.format(detail.replace(">", " instead of ", 1) if kind != "wrong_skill" else detail)


def leading_key(failures: Sequence[Failure]) -> tuple[str, float]:
    """The leading fact most failures share, and the share that has it among their facts."""
    leads = Counter(f.leading.key for f in failures if f.leading is not None)
    if not leads:
        return "", 0.0
    key = min(leads, key=lambda k: (-leads[k], k))
    return key, sum(key in f.keys for f in failures) / len(failures)


def root_cause(failures: Sequence[Failure], phrases: Sequence[Phrase]) -> str:
    """The facts behind a group in one or two sentences with their numbers."""
    counts = Counter(key for f in failures for key in f.keys)
    top = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    told = "; ".join(f"{label_of(key)} in {n} of {len(failures)}" for key, n in top)
    if not told:
        return "no fact explains these failures: read the cases"
    said = ", ".join(f"“{p.text}”" for p in phrases[:4])
    return f"{told}." + (f" Comments that mark them: {said}." if said else "")


def modules_of(failures: Iterable[Failure], known: Callable[[str], bool]) -> tuple[str, ...]:
    """Files of the harness that the facts point to, most often first; only such as exist."""
    counts: Counter[str] = Counter()
    for failure in failures:
        named = {m for o in failure.observations[:3] for m in _modules(o, failure) if known(m)}
        counts.update(named)
    return tuple(sorted(counts, key=lambda m: (-counts[m], m))[:5])


def _modules(observation: Observation, failure: Failure) -> list[str]:
    kind, detail = observation.kind, observation.detail
    loaded = [_skill(s) for s in failure.seen.skills]
    tool = [_tool(detail.partition(":")[0])]
    table: dict[str, list[str]] = {
        "over_refusal": [_tool("refuse"), *loaded],
        "missed_refusal": [_tool("refuse"), *loaded],
        "missed_clarification": loaded,
        "needless_clarification": loaded,
        "partial_answer": loaded,
        "wrong_language": ["prompts/pipeline.yaml", *loaded],
        "tool_error": tool,
        "malformed_call": tool,
        "loop": [*tool, "hooks/"],
        "hook_failed": [f"hooks/{detail}.yaml"],
        "hook": [f"hooks/{detail.partition(':')[0]}.yaml"],
        "skill_not_loaded": [_skill(detail)],
        "wrong_skill": [_skill(s) for s in reversed(detail.split(">"))],
        "tool_not_called": [*loaded, *tool],
        "wrong_arguments": tool,
        "fact_not_said": loaded,
        "fact_not_fetched": loaded,
        "finding": loaded,
        "assertion": loaded,
        "no_reply": loaded,
    }
    return table.get(kind, [])


def _skill(name: str) -> str:
    return f"skills/{name}/SKILL.md"


def _tool(name: str) -> str:
    return f"tools/{name}.yaml"
