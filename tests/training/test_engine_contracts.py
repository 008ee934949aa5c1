"""Exported jobs against the engines themselves: opt-in, each in an environment of its own.

`HARNESS_VERL_PYTHON` names an interpreter with requirements/verl.txt, `HARNESS_ROLL_CHECKOUT` a
checkout of ROLL for it (docs/scale_out.md says how both are made).
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest
from lesson_shop import make_lesson_shop
from test_verl_export import MEGATRON, TWO, head_job, rl_job
from tiny_checkpoint import make_tiny

from harness_cli.records.training_job import Lora, OpdTraining, SftTraining
from harness_cli.training.scale.key_tree import key_tree
from harness_cli.training.scale.roll_folder import write_roll_job
from harness_cli.training.scale.verl_folder import write_verl_job

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VERL = os.environ.get("HARNESS_VERL_PYTHON", "")
ROLL = os.environ.get("HARNESS_ROLL_CHECKOUT", "")
pytestmark = [
    pytest.mark.accept,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not VERL, reason="HARNESS_VERL_PYTHON names no Python with verl"),
]
needs_roll = pytest.mark.skipif(not ROLL, reason="HARNESS_ROLL_CHECKOUT names no checkout of ROLL")
JOBS = ("rl", "rl-async", "rl-apart", "opd", "opd-agentic", "head", "sft", "sft-megatron")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """One folder a kind of job."""
    root = tmp_path_factory.mktemp("shop")
    shop = make_lesson_shop(root)
    make_tiny(root / "base")
    (root / "p.jsonl").write_text('{"prompt": "Name a colour."}\n{"prompt": "Add two."}\n')
    rows = [{"input_ids": [5, 6, 7, 8], "labels": [-100, -100, 7, 8]},
            {"input_ids": [5, 6], "labels": [-100, 6]}]  # fmt: skip
    (root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path_factory.mktemp("out")
    change = msgspec.structs.replace
    opd = {"base": "base", "teacher": "base", "steps": 3, "batch": 2}
    sft = SftTraining(name="sft", base="base", data=("rows.jsonl",), steps=2, batch=2)
    lora = {"ratio": "token", "updates": 2, "passes": 2, "steps": 8, "lora": Lora()}
    jobs = {
        "rl": (rl_job(kl=0.01, augmented=0.0), TWO),
        "rl-async": (
            rl_job(**lora),
            change(TWO, strategy="fsdp", trainer="colocated_async"),
        ),
        "rl-apart": (
            rl_job(),
            change(MEGATRON, trainer="disaggregated", sync_every=2, replay_routing=True),
        ),
        "opd": (OpdTraining(name="opd", prompts=("p.jsonl",), **opd), TWO),
        "opd-agentic": (
            OpdTraining(name="opd", kind="agentic", environment={"evalset": "shop"}, **opd),
            TWO,
        ),
        "head": (head_job(schedule="constant"), MEGATRON),
        "sft": (sft, TWO),
        "sft-megatron": (change(sft, schedule="linear"), MEGATRON),
    }
    assert tuple(jobs) == JOBS
    for name, (job, cluster) in jobs.items():
        write_verl_job(shop, job, cluster, out / name)
    write_roll_job(shop, rl_job(), TWO, out / "roll")
    write_roll_job(shop, rl_job(kl=0.01), change(MEGATRON, rollout="vllm"), out / "roll-megatron")
    return out, root / "base"


def checks(script, *given, path="", cwd=None, plugin=False):
    """What a script of the engine's interpreter found; its words where it failed."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in (path, str(ROOT)) if p),
        "HF_HUB_OFFLINE": "1",
        "RAY_AUTH_MODE": "disabled",
        "OMP_NUM_THREADS": "1",
    }
    if plugin:
        env["VERL_USE_EXTERNAL_MODULES"] = "harness_cli.training.scale.verl_plugin"
    words = [VERL, str(HERE / script), *map(str, given)]
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=540)
    lines = [x.removeprefix("CHECK ") for x in done.stdout.splitlines() if x.startswith("CHECK ")]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [json.loads(line) for line in lines]


def test_verl_composes_validates_and_builds_every_exported_job(exported):
    out, _ = exported
    found = checks("verl_contract.py", "configs", *(out / name for name in JOBS))
    assert [f["config"] for f in found] == list(JOBS)
    for told in found:
        assert told["misspelt_refused"] is True
        assert told["critic"] is False
    built = {f["config"]: f["built"] for f in found}
    assert built["rl"][:4] == ["FSDPActorConfig", "RolloutConfig", "HFModelConfig", "AlgoConfig"]
    assert built["rl-apart"][0] == "McoreActorConfig"
    assert built["sft"] == ["HFModelConfig", "FSDPEngineConfig", "FSDPOptimizerConfig"]
    assert built["sft-megatron"][1:] == ["McoreEngineConfig", "McoreOptimizerConfig"]


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [("rl", (), "trainer_mode: harness_sync"), ("sft", ("--sft",), "name: MaskedRows")],
)
def test_a_jobs_entry_point_reaches_verls_own(exported, name, more, said):
    """`--cfg job`: Hydra shows what verl would run, after our own checks, and ends."""
    out, _ = exported
    lines = (out / name / "overrides.txt").read_text().splitlines()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1",
           "VERL_USE_EXTERNAL_MODULES": "harness_cli.training.scale.verl_plugin"}  # fmt: skip
    words = [VERL, "-m", "harness_cli.training.scale.verl_start", *more, *lines, "--cfg", "job"]
    done = subprocess.run(words, cwd=out / name, env=env, capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert said in done.stdout


def test_the_kept_key_trees_are_those_of_verl(tmp_path):
    words = [VERL, "-m", "harness_cli.training.scale.key_sources", "verl", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, timeout=300)
    made = {p.stem: json.loads(p.read_text()) for p in tmp_path.glob("*.json")}
    assert {name: key_tree(name) for name in made} == made
    assert len(made) == 4


def test_our_advantages_run_on_the_real_transfer_queue(exported):
    out, _ = exported
    found = checks("verl_contract.py", "advantage", out / "rl" / "room", plugin=True)
    told = {key: value for line in found for key, value in line.items()}
    assert len(told["registered"]) == 3
    # Registered under a name of our own, and served by the synchronous buffer all the same.
    assert told["mode"] == "sync"
    assert told["synchronous"] is True
    values = told["advantages"]
    # Group a differs in accuracy alone: 1 0 1 0 is +1 -1 +1 -1, for replies; a tool result is
    # masked; nothing differs among its calls.
    assert values["a_0_1"] == [0.0, 1.0, 1.0]
    assert values["a_1_1"] == [0.0, -1.0, -1.0]
    assert values["a_0_0"] == [0.0] * 5
    # Group b, by hand: rationality 0 1 1 1 and q 0 0 0 ½, λ = 0.1, normalised again.
    assert [values[f"b_{i}_0"][0] for i in range(4)] == [-1.7239, 0.6539, 0.6539, 0.4161]
    assert values["padx_0_0"] == [0.0]
    assert told["metrics"]["harness/rollouts"] == 8


def test_our_agent_loop_runs_on_verls_base_class(exported):
    out, base = exported
    (told,) = checks("verl_contract.py", "loop", out / "rl", base)
    # Without augmented states: a state may call `load_skill` by another name, and then it is none.
    assert told["segments"] == ["tool", "reply", "tool", "reply"]
    assert told["faithful"] is True
    assert told["turns"] >= 4
    assert (told["states"], told["requests"], told["prompts"]) == (1, 1, 1)
    assert told["policies"] == ["3"]
    assert told["first_prompt_was_read"] is True
    assert told["lengths"] is True
    assert "load_skill" in told["said"][0]
    keys = {"prompts", "responses", "response_mask", "rollout_log_probs", "rm_scores"}
    assert keys <= set(told["keys"])


def test_verl_itself_computes_our_loss_over_two_rows_and_another_gdpo():
    """test_losses.py and test_advantages.py write its formulas out; here it computes them."""
    (told,) = checks("verl_arithmetic.py")
    assert told["gspo_off"] < 1e-7  # it divides by |y| + 1e-8
    assert told["clipped"] > 0
    assert told["gdpo"] == [0.0, 0.0, 1.616, -1.616, -0.466, -0.466, -0.466, 1.399]
    assert told["ours"] == [0.0, 0.0, 1.414, -1.414, -0.577, -0.577, -0.577, 1.732]


def test_verls_collator_takes_our_rows(exported):
    out, _ = exported
    data = out / "sft" / "data" / "train.parquet"
    (told,) = checks("verl_contract.py", "rows", data)
    assert told == {"rows": [[5, 6, 7, 8], [5, 6]], "masks": [[0, 0, 1, 1], [0, 1]]}


@needs_roll
def test_roll_builds_its_configuration_and_masks_what_is_masked(exported, tmp_path):
    out, _ = exported
    folders = (out / "roll", out / "roll-megatron")
    for told in checks("roll_contract.py", "configs", *folders, path=ROLL, cwd=tmp_path):
        assert told["kind"] == "AgenticConfig"
        assert told["ratio"] == "segment"
        assert told["masked_gradient"] == 0.0
        assert told["value"] == 1.0
        assert (told["batch"], told["group"], told["envs"]) == (16, 4, 16)
        assert told["sampling"] == [1.0, -1]


@needs_roll
def test_our_runner_plays_an_episode_behind_rolls_proxy(exported, tmp_path):
    out, _ = exported
    (told,) = checks("roll_contract.py", "runner", out / "rl" / "room", path=ROLL, cwd=tmp_path)
    assert told["status"] == ["Done", "Done"]
    assert told["scores"] == [1.0, 1.0]  # the greeting, by its skill: all four dimensions
    assert told["paths"] == ["/v1/chat/completions"]
    assert told["tokens"] == ["Bearer 5"]  # how the proxy tells environments apart
    assert told["calls"] == 4
    assert told["tools"] is True
    assert told["stream"] is False


@needs_roll
def test_the_kept_key_tree_is_that_of_roll(tmp_path):
    words = [VERL, "-m", "harness_cli.training.scale.key_sources", "roll", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((ROLL, str(ROOT)))}
    subprocess.run(words, cwd=tmp_path, env=env, check=True, capture_output=True, timeout=300)
    assert json.loads((tmp_path / "roll-agentic.json").read_text()) == key_tree("roll-agentic")


@needs_roll
def test_the_masked_mean_trap_of_roll_is_still_there(tmp_path):
    """Why `loss_agg_mode` is exported: once this fails, a note in docs/scale_out.md is history."""
    script = (
        "import torch; from roll.utils.functionals import agg_loss\n"
        "x=torch.tensor([[1.,1.,50.,50.]]); m=torch.tensor([[1,1,0,0]])\n"
        "print(agg_loss(x,m,'token-mean',batch_num_tokens=torch.tensor(2.),"
        "global_valid_samples=torch.tensor(1.)).item())"
    )
    env = {**os.environ, "PYTHONPATH": ROLL}
    done = subprocess.run([VERL, "-c", script], cwd=tmp_path, env=env, capture_output=True,
                          text=True, check=True, timeout=120)  # fmt: skip
    assert float(done.stdout.split()[-1]) != 1.0


def test_ray_takes_the_submitted_job(tmp_path):
    """A real head, a real `ray job submit` with the mode said on both sides."""
    ray = Path(VERL).parent / "ray"
    if not ray.is_file():
        pytest.skip("HARNESS_VERL_PYTHON names no Python with verl")
    from harness_cli.training.scale.submit import submit, submit_words

    env = {**os.environ, "RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}
    temp = tempfile.mkdtemp(prefix="hr")  # Ray's sockets want a short path
    head = subprocess.Popen(
        [str(ray), "start", "--head", "--block", "--port", "26379", "--dashboard-port", "28265",
         "--num-cpus", "2", "--include-dashboard", "true", "--temp-dir", temp],
        env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        cluster = msgspec.structs.replace(
            TWO, ray=str(ray), address="http://127.0.0.1:28265", auth="disabled"
        )
        (tmp_path / "runtime_env.yaml").write_text("working_dir: .\nenv_vars: {WORD: harness}\n")
        (tmp_path / "room.txt").write_text("here")
        say = "import os; print(os.environ['WORD'], open('room.txt').read())"
        words = submit_words(cluster, [VERL, "-c", say])
        words.remove("--no-wait")
        told = _until_it_takes_jobs(submit, tmp_path, cluster, words)
        assert "harness here" in told
        assert "succeeded" in told
    finally:
        os.killpg(head.pid, signal.SIGTERM)
        try:
            head.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(head.pid, signal.SIGKILL)
        shutil.rmtree(temp, ignore_errors=True)


def _until_it_takes_jobs(submit, folder, cluster, words):
    import time

    from harness_cli.errors import HarnessError

    end = time.monotonic() + 120
    while True:
        try:
            return submit(folder, cluster, words)
        except HarnessError:
            if time.monotonic() > end:
                raise
            time.sleep(3)
