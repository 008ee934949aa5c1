"""Facts in words: labels of clusters, root causes, the modules a person should look at."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

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


class Facts:
    """What was observed of a group of failures, each of them read once."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = failures
        self.keys = [f.keys for f in failures]
        self.counts = Counter(chain.from_iterable(self.keys))
        leads = Counter(f.observations[0].key for f in failures if f.observations)
        self.leading = min(leads, key=lambda k: (-leads[k], k)) if leads else ""
        """The leading fact that most of them share; empty where nothing was observed."""
        self.share = self.counts[self.leading] / len(failures) if leads else 0.0
        """The share that has it among their facts."""


def root_cause(group: Facts, phrases: Sequence[Phrase]) -> str:
    """The facts behind a group in one or two sentences with their numbers."""
    top = sorted(group.counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    told = "; ".join(f"{label_of(key)} in {n} of {len(group.failures)}" for key, n in top)
    if not told:
        low = Counter(m for f in group.failures for m in f.failed_metrics)
        graded = "".join(f", graded low in {m}: {n}" for m, n in sorted(low.items())[:4])
        return f"no fact explains these failures{graded}: read the cases"
    said = ", ".join(f"“{p.text}”" for p in phrases[:4])
    return f"{told}." + (f" Comments that mark them: {said}." if said else "")


def modules_of(failures: Iterable[Failure], known: Callable[[str], bool]) -> tuple[str, ...]:
    """Files of the harness that the facts point to, most often first; only such as exist."""
    met: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    counts: Counter[str] = Counter()
    for failure in failures:
        named: set[str] = set()
        for o in failure.observations[:3]:
            alike = o.kind, o.detail, failure.seen.skills
            if alike not in met:
                met[alike] = [m for m in _modules(o, failure) if known(m)]
            named.update(met[alike])
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
