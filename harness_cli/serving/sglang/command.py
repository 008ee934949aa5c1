"""The exact command line of SGLang for one replica of a job."""

from collections.abc import Iterator
from typing import Final

from harness_cli.records.serve_job import MtpServing, Option, ServeJob
from harness_cli.serving.sglang.options import MOVED, version_of

LAUNCHER: Final = ("python", "-m", "sglang.launch_server")
"""SGLang lives in an environment of its own; `launcher` in the job names its Python."""
WEIGHTS: Final = 16
"""Characters of a digest that the server reports as its `weight_version`."""


def sglang_words(
    job: ServeJob, *, model: str, host: str, port: int, sha256: str | None
) -> tuple[str, ...]:
    """Launcher and options; full names only, since prefixes mean another thing in each version."""
    return (*(job.launcher or LAUNCHER), *_options(job, model, host, port, sha256))


def _options(job: ServeJob, model: str, host: str, port: int, sha256: str | None) -> Iterator[str]:
    spread = job.parallelism
    pairs: list[tuple[str, Option | None]] = [
        ("model-path", model),
        ("served-model-name", job.served_name),
        ("host", host),
        ("port", port),
        ("dtype", job.dtype),
        ("tp-size", spread.tp),
        ("pp-size", spread.pp),
        ("dp-size", spread.dp if spread.dp > 1 else None),
        ("tool-call-parser", job.parsers.tool_call),
        ("reasoning-parser", job.parsers.reasoning),
        # Unset it would become 48 with speculation, and nobody is told.
        ("max-running-requests", job.admission.per_replica),
        ("max-queued-requests", job.admission.queue or None),
        ("enable-metrics", True),
        ("enable-cache-report", True),
        ("weight-version", sha256[:WEIGHTS] if sha256 else None),
    ]
    if job.mtp is not None:
        pairs += _speculation(job.mtp)
        pairs += _before_rename(job)
    pairs += list(job.options.items())
    for name, value in pairs:
        yield from option_words(name, value)


def _speculation(mtp: MtpServing) -> list[tuple[str, Option | None]]:
    exact = mtp.rejection_sampling
    return [
        ("speculative-algorithm", mtp.algorithm),
        ("speculative-draft-model-path", mtp.draft_model_path),
        ("speculative-num-steps", mtp.num_steps),
        ("speculative-eagle-topk", mtp.eagle_topk),
        ("speculative-num-draft-tokens", mtp.num_draft_tokens),
        # Beside rejection sampling SGLang refuses thresholds; 1.0 is its default.
        ("speculative-accept-threshold-single", None if exact else mtp.accept_threshold_single),
        ("speculative-accept-threshold-acc", None if exact else mtp.accept_threshold_acc),
        ("speculative-use-rejection-sampling", exact),
        ("speculative-adaptive", mtp.adaptive),
    ]


def _before_rename(job: ServeJob) -> list[tuple[str, Option | None]]:
    """Hybrid models keep their prefix cache under speculation only with the extra buffer.

    From 0.5.14 `mamba-radix-cache-strategy` is `auto` and does that unasked (QwenLM #108).
    """
    name = "mamba-scheduler-strategy"
    version = version_of(job.version or "")
    if name in job.options or version >= (0, 5, 14) or version >= MOVED[name][0]:
        return []
    return [(name, "extra_buffer")]


def option_words(name: str, value: Option | None) -> Iterator[str]:
    """An option as words; switches that are off and values that are not given are no words."""
    if value is None or value is False:
        return
    yield f"--{name}"
    if value is True:
        return
    values = value if isinstance(value, tuple) else (value,)
    yield from (f"{v:g}" if isinstance(v, float) else str(v) for v in values)
