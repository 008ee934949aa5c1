"""The rules SGLang keeps to itself: what its parser takes and its engine then ignores or refuses.

Sources by rule: the reference of SERVING (§1, §7), read in the wheels of 34 versions.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from harness_cli.harness.findings import Finding
from harness_cli.records.serve_job import MtpServing, Option, ServeJob
from harness_cli.serving.findings import error, warning
from harness_cli.serving.sglang.options import (
    MOVED,
    OLDEST,
    SHORT,
    SINCE,
    TABLES,
    Known,
    Version,
    table,
    version_of,
)

SECTIONS: Final = {
    "model-path": "model",
    "served-model-name": "served_name",
    "host": "host",
    "port": "port",
    "dtype": "dtype",
    "tp-size": "parallelism",
    "pp-size": "parallelism",
    "dp-size": "parallelism",
    "tool-call-parser": "parsers",
    "reasoning-parser": "parsers",
    "max-running-requests": "admission",
    "max-queued-requests": "admission",
    "weight-version": "checkpoint",
    "speculative-algorithm": "mtp",
    "speculative-num-steps": "mtp",
    "speculative-eagle-topk": "mtp",
    "speculative-num-draft-tokens": "mtp",
    "speculative-accept-threshold-single": "mtp",
    "speculative-accept-threshold-acc": "mtp",
    "speculative-draft-model-path": "mtp",
    "speculative-use-rejection-sampling": "mtp",
    "speculative-adaptive": "mtp",
}
"""Options that a section of the job file sets: two places for one value would contradict."""
SECRET: Final = ("api-key", "admin-api-key")


def job_findings(job: ServeJob) -> Iterator[Finding]:
    """Everything wrong with a job whose engine is `sglang`."""
    if not job.version:
        fix = f"version: {TABLES[-1]}"
        yield error("version", "SGLang's version is not named: options come and go with it", fix)
        return
    version = version_of(job.version)
    if version < OLDEST:
        yield error(
            "version",
            f"SGLang {job.version} cannot load the draft head of Qwen3.5 (0.5.9 is the first)",
            f"version: {TABLES[-1]}",
        )
    if not job.model:
        yield error("model", "no `model` is named", "a folder, or a name that the engine resolves")
    if table(job.version) is None:
        yield warning(
            "version",
            f"no table of options is known for SGLang {job.version}",
            f"checked are {', '.join(TABLES)}; of others only what moved",
        )
    if job.mtp is not None:
        yield from mtp_findings(job.mtp, version)
    yield from _parsers(job)
    for name, value in job.options.items():
        yield from option_findings(name, value, job.version)


def mtp_findings(mtp: MtpServing, version: Version) -> Iterator[Finding]:
    """Speculation: numbers that contradict each other, settings that exclude each other."""
    yield from _tree(mtp)
    if mtp.rejection_sampling:
        yield from _sampling(mtp, version)
    elif mtp.lossy:
        thresholds = f"{mtp.accept_threshold_single:g}/{mtp.accept_threshold_acc:g}"
        yield warning(
            "mtp-lossy",
            f"the accept thresholds {thresholds} are lossy at temperature 1: drafts are taken "
            "that the policy would sample less often",
            "1.0/1.0 is exact, and so is `rejection_sampling: true`",
        )
    if mtp.adaptive:
        if version < SINCE["speculative-adaptive"]:
            yield _too_old("adaptive", "speculative-adaptive")
        if mtp.eagle_topk != 1:
            yield error("mtp-adaptive", "`adaptive` needs `eagle_topk: 1`")
    if mtp.algorithm == "EAGLE" and mtp.draft_model_path is None:
        yield error(
            "mtp-algorithm",
            "EAGLE takes its draft from a model of its own, and no `draft_model_path` is named",
            "`algorithm: NEXTN` takes the head that lies in the checkpoint",
        )
    if mtp.algorithm == "NEXTN" and mtp.draft_model_path is not None:
        yield warning(
            "mtp-algorithm",
            "`draft_model_path` with NEXTN: that folder needs `mtp.*` tensors and the config.json "
            "of the same architecture",
            "leave it out where the head lies in the checkpoint",
        )


def _tree(mtp: MtpServing) -> Iterator[Finding]:
    steps, topk, drafts = mtp.num_steps, mtp.eagle_topk, mtp.num_draft_tokens
    if topk == 1 and drafts != steps + 1:
        yield error(
            "mtp-steps",
            f"`num_draft_tokens: {drafts}` with `num_steps: {steps}` and `eagle_topk: 1`: SGLang "
            f"would take {steps + 1} without a word",
            f"num_draft_tokens: {steps + 1}",
        )
    most = 1 + topk + (steps - 1) * topk * topk
    if topk > 1 and not steps + 1 <= drafts <= most:
        yield error(
            "mtp-steps",
            f"`num_draft_tokens: {drafts}` fits no tree of {steps} steps with top-k {topk}",
            f"between {steps + 1} and {most}",
        )


def _sampling(mtp: MtpServing, version: Version) -> Iterator[Finding]:
    if mtp.lossy:
        yield error(
            "mtp-sampling",
            "accept thresholds below 1 and `rejection_sampling` exclude each other",
            "set both thresholds to 1.0, or `rejection_sampling: false`",
        )
    if version < SINCE["speculative-use-rejection-sampling"]:
        yield _too_old("rejection_sampling", "speculative-use-rejection-sampling")


def _too_old(setting: str, option: str) -> Finding:
    since = ".".join(map(str, SINCE[option]))
    return error("mtp-version", f"`{setting}` needs SGLang {since}", f"version: {TABLES[-1]}")


def _parsers(job: ServeJob) -> Iterator[Finding]:
    known = table(job.version or "") or {}
    pairs = (
        ("tool-call-parser", job.parsers.tool_call),
        ("reasoning-parser", job.parsers.reasoning),
    )
    for name, value in pairs:
        choices = known[name].choices if name in known else ()
        if value is not None and choices and value not in choices:
            yield error(
                "parser", f"SGLang {job.version} has no {name} `{value}`", _meant(value, choices)
            )


def option_findings(name: str, value: Option, version: str) -> Iterator[Finding]:
    """One entry of `options`: full names only, of this version, with as many values as it takes."""
    if name in SECRET:
        yield error("secret", f"`{name}` is a secret", "put a gateway with the key in front")
        return
    if name in SECTIONS:
        yield error("option", f"`options: {name}` is set elsewhere", f"by `{SECTIONS[name]}`")
        return
    moved = MOVED.get(name)
    if moved is not None and version_of(version) >= moved[0]:
        fix = f"it is called `{moved[1]}` now" if moved[1] else "leave it out"
        yield error("option", f"SGLang {version} no longer has `--{name}`", fix)
        return
    if name in SHORT:
        full = SHORT[name]
        fix = f"set by `{SECTIONS[full]}`" if full in SECTIONS else f"write `{full}`"
        yield error("option", f"`--{name}` is no full option name", fix)
        return
    if name in SINCE and version_of(version) < SINCE[name]:
        since = ".".join(map(str, SINCE[name]))
        yield error("option", f"SGLang {version} has no `--{name}`", f"it came with {since}")
        return
    known = table(version)
    if known is not None:
        yield from _in_table(name, value, version, known)


def _in_table(
    name: str, value: Option, version: str, known: Mapping[str, Known]
) -> Iterator[Finding]:
    option = known.get(name)
    if option is None:
        yield error("option", f"SGLang {version} has no option `--{name}`", _not_known(name, known))
        return
    if option.deprecated:
        yield warning("option", f"`--{name}` is deprecated in SGLang {version}")
    problem = _wrong_value(option, value)
    if problem:
        yield error("option", f"`--{name}` {problem}")
        return
    values = value if isinstance(value, tuple) else (value,)
    odd = [str(v) for v in values if option.choices and str(v) not in option.choices]
    if odd and option.kind != "flag":
        yield error("option", f"`--{name}` cannot be `{odd[0]}`", _meant(odd[0], option.choices))


def _wrong_value(option: Known, value: Option) -> str | None:
    if option.kind == "flag":
        return None if isinstance(value, bool) else "is a switch: `true` or nothing"
    if isinstance(value, bool) and option.kind != "maybe":
        return "takes a value"
    if isinstance(value, tuple) and option.kind != "many":
        return "takes one value"
    return None


def _not_known(name: str, known: Mapping[str, Known]) -> str:
    for option in known.values():
        if name in option.aliases:
            return f"write `{option.name}`"
    longer = [n for n in known if n.startswith(name)]
    if longer:
        shown = ", ".join(f"`{n}`" for n in sorted(longer)[:4])
        return f"full names only; it begins {shown}" + (" and more" if len(longer) > 4 else "")
    return _meant(name, tuple(known))


def _meant(name: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""
