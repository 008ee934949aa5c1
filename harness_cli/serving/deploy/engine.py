"""The engine's command line inside a container or on a rented machine."""

from typing import Final

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.serve_job import ServeJob
from harness_cli.serving.sglang.command import sglang_words
from harness_cli.serving.vllm_cpu import vllm_words

PORT: Final = 30000
"""Each replica has a machine of its own, so all listen on one port."""


def engine_words(job: ServeJob) -> tuple[str, ...]:
    """The same command as on this machine, listening to others."""
    # A launcher names a place on this machine.
    job = msgspec.structs.replace(job, launcher=())
    if job.engine == "sglang":
        sha256 = job.checkpoint.sha256 if job.checkpoint else None
        return sglang_words(job, model=job.model, host="0.0.0.0", port=PORT, sha256=sha256)
    if job.engine == "vllm-cpu":
        return vllm_words(job, model=job.model, host="0.0.0.0", port=PORT)
    raise UsageError(f"the engine `{job.engine}` serves on this machine only", hint="sglang")
