"""A serving job is refused for what would serve something else than was meant, all at once."""

import json

import msgspec
import numpy as np
import pytest
from job_bench import make_project, standin
from typer.testing import CliRunner

from harness_cli.errors import BadFile
from harness_cli.main import app
from harness_cli.models.mtp_stitch import stitch
from harness_cli.records.config import CheckpointRef, PolicyConfig, ProjectConfig
from harness_cli.records.reader import parse_yaml
from harness_cli.records.serve_job import MtpServing, Parsers, RouterSettings, ServeJob
from harness_cli.serving.control import read_job
from harness_cli.serving.launch import replica_launch
from harness_cli.serving.preflight import check_job, resolved, served_policy
from harness_cli.serving.router import router_words
from harness_cli.serving.sglang.command import sglang_words
from harness_cli.store.checkpoints import digest_of, register

EXACT = {"accept_threshold_single": 1.0, "accept_threshold_acc": 1.0}
CONFIG = ProjectConfig(
    policies={
        "builtin": PolicyConfig(kind="builtin"),
        "far": PolicyConfig(kind="openai", base_url="http://127.0.0.1:9/v1", model="m"),
    }
)


def job(**given):
    base = {"name": "x", "engine": "sglang", "version": "0.5.23", "model": "hub/name"}
    return ServeJob(**(base | given))


def found(made, tmp_path, level="error"):
    return [f.rule for f in check_job(made, CONFIG, tmp_path) if f.level == level]


def mtp(**given):
    return MtpServing(**(EXACT | given))


WRONG = {
    "no version": ({"version": None}, "serve/version"),
    "too old for the head": ({"version": "0.5.8"}, "serve/version"),
    "no model": ({"model": ""}, "serve/model"),
    "a name that is no file name": ({"name": "../x"}, "serve/name"),
    "another schema": ({"schema": 2}, "serve/schema"),
    "replicas without a router": (
        {"replicas": 2, "router": RouterSettings(use=False)}, "serve/router",
    ),
    "drafts that are not steps + 1": ({"mtp": mtp(num_draft_tokens=3)}, "serve/mtp-steps"),
    "a tree too small": (
        {"mtp": mtp(eagle_topk=2, num_steps=3, num_draft_tokens=3)}, "serve/mtp-steps",
    ),
    "a tree too large": (
        {"mtp": mtp(eagle_topk=2, num_steps=2, num_draft_tokens=8)}, "serve/mtp-steps",
    ),
    "thresholds beside rejection sampling": (
        {"mtp": MtpServing(rejection_sampling=True)}, "serve/mtp-sampling",
    ),
    "rejection sampling before it was there": (
        {"version": "0.5.13", "mtp": mtp(rejection_sampling=True)}, "serve/mtp-version",
    ),
    "adaptive before it was there": (
        {"version": "0.5.10", "mtp": mtp(adaptive=True)}, "serve/mtp-version",
    ),
    "adaptive in a tree": (
        {"mtp": mtp(adaptive=True, eagle_topk=2, num_draft_tokens=8)}, "serve/mtp-adaptive",
    ),
    "EAGLE without a draft": ({"mtp": mtp(algorithm="EAGLE")}, "serve/mtp-algorithm"),
    "a parser that is none": ({"parsers": Parsers(tool_call="qwen4")}, "serve/parser"),
    "a renamed option": (
        {"options": {"mamba-scheduler-strategy": "extra_buffer"}}, "serve/option",
    ),
    "an option not yet there": (
        {"version": "0.5.13", "options": {"mamba-radix-cache-strategy": "auto"}}, "serve/option",
    ),
    "a removed option": ({"options": {"speculative-skip-dp-mlp-sync": True}}, "serve/option"),
    "a prefix": ({"options": {"mem-fraction": 0.8}}, "serve/option"),
    "an alias": ({"options": {"context-bucket": 1}}, "serve/option"),
    "what a section sets": ({"options": {"tp-size": 2}}, "serve/option"),
    "a switch with a value": ({"options": {"disable-radix-cache": "yes"}}, "serve/option"),
    "a value that is none": ({"options": {"kv-cache-dtype": "int3"}}, "serve/option"),
    "a value where there is none": ({"options": {"mem-fraction-static": True}}, "serve/option"),
    "two values": ({"options": {"random-seed": (1, 2)}}, "serve/option"),
    "a secret": ({"options": {"api-key": "x"}}, "serve/secret"),
    "MTP of our own engine": ({"engine": "builtin", "mtp": mtp()}, "serve/mtp"),
    "options of our own engine": ({"engine": "builtin", "options": {"x": 1}}, "serve/option"),
    "a policy that is none": ({"engine": "policy", "policy": "nobody"}, "serve/policy"),
    "a policy of another kind": ({"engine": "local", "policy": "builtin"}, "serve/policy"),
    "a policy with an endpoint": ({"engine": "policy", "policy": "far"}, "serve/policy"),
    "a tree on vLLM": (
        {"engine": "vllm-cpu", "mtp": mtp(eagle_topk=2, num_draft_tokens=8)}, "serve/mtp-vllm",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_what_cannot_serve_as_meant_is_an_error_before_anything_starts(kind, tmp_path):
    given, rule = WRONG[kind]
    assert found(job(**given), tmp_path) == [rule]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"mtp": MtpServing()}, "serve/mtp-lossy"),
        ({"mtp": mtp(draft_model_path="/d")}, "serve/mtp-algorithm"),
        ({"version": "0.5.17"}, "serve/version"),
        ({"options": {"disable-cuda-graph": True}}, "serve/option"),
        ({"engine": "vllm-cpu", "mtp": MtpServing()}, "serve/mtp-exact"),
        ({"mtp": mtp()}, "serve/checkpoint"),
    ],
)
def test_what_serves_and_should_be_known_is_a_warning(given, rule, tmp_path):
    made = job(**given)
    assert found(made, tmp_path) == []
    assert rule in found(made, tmp_path, "warning")


def test_the_rename_says_the_new_name_and_a_misspelling_the_nearest_one(tmp_path):
    made = job(options={"cuda-graph-max-bs": 8, "mem-fraction-statik": 0.8, "disable-radix": True})
    fixes = [f.fix for f in check_job(made, CONFIG, tmp_path)]
    assert any("cuda-graph-max-bs-decode" in fix for fix in fixes)
    assert any("mem-fraction-static" in fix for fix in fixes)
    assert any("disable-radix-cache" in fix for fix in fixes)


def test_older_versions_get_the_extra_buffer_that_newer_ones_take_unasked():
    def words(version):
        made = job(version=version, mtp=mtp())
        return sglang_words(made, model="m", host="h", port=1, sha256=None)

    assert "--mamba-scheduler-strategy" in words("0.5.12")
    assert "--mamba-scheduler-strategy" not in words("0.5.14")


# -- weights


def checkpoint(folder, *, head=True, spoil=None):
    """A tiny Qwen3.5-style dense checkpoint: its head alone, which is what is checked."""
    hidden, heads, size, inner, vocab = 8, 2, 4, 16, 11
    config = {
        "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
        "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": 1,
        "head_dim": size, "intermediate_size": inner, "vocab_size": vocab,
        "num_hidden_layers": 1, "mtp_num_hidden_layers": 1,
    }  # fmt: skip
    layer = "mtp.layers.0."
    tensors = {"model.embed_tokens.weight": (vocab, hidden), "lm_head.weight": (vocab, hidden)}
    if head:
        tensors |= {
            "mtp.fc.weight": (hidden, 2 * hidden),
            "mtp.pre_fc_norm_embedding.weight": (hidden,),
            "mtp.pre_fc_norm_hidden.weight": (hidden,),
            "mtp.norm.weight": (hidden,),
            f"{layer}input_layernorm.weight": (hidden,),
            f"{layer}post_attention_layernorm.weight": (hidden,),
            f"{layer}self_attn.q_proj.weight": (2 * heads * size, hidden),
            f"{layer}self_attn.k_proj.weight": (size, hidden),
            f"{layer}self_attn.v_proj.weight": (size, hidden),
            f"{layer}self_attn.o_proj.weight": (hidden, heads * size),
            f"{layer}self_attn.q_norm.weight": (size,),
            f"{layer}self_attn.k_norm.weight": (size,),
            f"{layer}mlp.gate_proj.weight": (inner, hidden),
            f"{layer}mlp.up_proj.weight": (inner, hidden),
            f"{layer}mlp.down_proj.weight": (hidden, inner),
        }
    generator = np.random.default_rng(1)
    arrays = {n: generator.normal(size=s).astype(np.float32) for n, s in tensors.items()}
    if spoil:
        spoil(arrays)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", arrays)
    return folder


def write_safetensors(path, arrays):
    """The format by hand: header length, JSON header, the bytes."""
    header, blob = {}, b""
    for name, array in arrays.items():
        data = array.tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(blob), len(blob) + len(data)],
        }
        blob += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + blob)


def with_nan(arrays):
    arrays["mtp.fc.weight"][0, 0] = np.nan


def wrong_shape(arrays):
    arrays["mtp.fc.weight"] = arrays["mtp.fc.weight"][:, :8]


def test_a_sound_head_is_no_finding(tmp_path):
    folder = checkpoint(tmp_path / "c")
    assert found(job(model=str(folder), mtp=mtp()), tmp_path) == []


def test_a_draft_is_looked_for_where_the_engine_starts(tmp_path, monkeypatch):
    """Paths of a job start at the project, wherever the command line stands (`-C`)."""
    monkeypatch.chdir("/")
    checkpoint(tmp_path / "d", head=False)
    made = job(mtp=mtp(draft_model_path="d"))
    assert found(made, tmp_path) == ["serve/mtp-head-absent"]


def test_a_draft_model_of_eagles_own_kind_is_not_taken_for_a_head_that_was_lost(tmp_path):
    draft = tmp_path / "d"
    draft.mkdir()
    (draft / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 1}')
    write_safetensors(draft / "model.safetensors", {"fc.weight": np.ones((4, 8), np.float32)})
    made = job(mtp=mtp(algorithm="EAGLE", draft_model_path="d"))
    assert found(made, tmp_path) == []
    lost = job(mtp=mtp(draft_model_path="d"))
    assert found(lost, tmp_path) != []
    (draft / "model.safetensors").rename(draft / "pytorch_model.bin")
    assert found(made, tmp_path) == []
    assert "serve/mtp-head" in found(made, tmp_path, "warning")
    assert found(lost, tmp_path) == ["serve/checkpoint"]


def test_a_head_that_went_stale_is_refused_before_anything_starts(tmp_path):
    """As `harness mtp check` finds it: the policy moved on since the head was put there."""
    checkpoint(tmp_path / "base")
    made = checkpoint(tmp_path / "c", head=False)
    stitch(tmp_path / "base", made)
    asked = job(model="c", mtp=mtp())
    assert found(asked, tmp_path) == []
    (moved,) = made.glob("*.safetensors")
    raw = bytearray(moved.read_bytes())
    place = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:place])
    raw[place + header["lm_head.weight"]["data_offsets"][0]] ^= 1
    moved.write_bytes(raw)
    assert found(asked, tmp_path) == ["serve/mtp-head-stale"]


@pytest.mark.parametrize(("words", "port"), [([], 30000), (["--port", "0"], 0)])
def test_a_free_port_can_be_asked_for_in_place_of_the_jobs(tmp_path, words, port):
    make_project(tmp_path)
    (tmp_path / "x.yaml").write_text("name: x\nengine: sglang\nversion: 0.5.23\nmodel: m\n")
    asked = ["serve", "up", "x.yaml", "--dry-run", "--json", "-C", str(tmp_path), *words]
    done = CliRunner().invoke(app, asked)
    assert json.loads(done.stdout)["job"]["port"] == port


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"head": False}, "serve/mtp-head-absent"),
        ({"spoil": with_nan}, "serve/mtp-head-non-finite"),
        ({"spoil": wrong_shape}, "serve/mtp-head-shape"),
        ({"spoil": lambda a: a.pop("mtp.norm.weight")}, "serve/mtp-head-missing"),
    ],
)
def test_a_head_that_would_draft_noise_is_refused(given, rule, tmp_path):
    folder = checkpoint(tmp_path / "c", **given)
    assert rule in found(job(model=str(folder), mtp=mtp()), tmp_path)
    assert found(job(model=str(folder)), tmp_path) == []  # without MTP nobody needs it


def test_weights_that_are_not_the_bound_ones_are_refused(tmp_path):
    folder = checkpoint(tmp_path / "c")
    right = digest_of(folder)
    for digest, wrong in ((right, []), ("0" * 64, ["serve/checkpoint"])):
        made = job(model=str(folder), checkpoint=CheckpointRef(uri="c", sha256=digest))
        assert found(made, tmp_path) == wrong


def test_a_registered_checkpoint_is_served_by_its_name_and_bound_to_its_digest(tmp_path):
    from harness_cli.records.checkpoint import Checkpoint

    made = checkpoint(tmp_path / "c")

    def fill(part):
        for path in made.iterdir():
            (part / path.name).write_bytes(path.read_bytes())

    record = Checkpoint(name="hat-1", made_by="rl", digest="", files={})
    digest = register(tmp_path, record, fill).digest
    found_job = resolved(job(model="hat-1", mtp=mtp()), tmp_path)
    assert found_job.checkpoint.sha256 == digest
    assert (tmp_path / ".harness/checkpoints/hat-1").samefile(found_job.model)
    assert found(found_job, tmp_path) == []
    assert resolved(job(model="hub/name"), tmp_path).checkpoint is None
    # Our own server takes the name as it is.
    own = job(engine="checkpoint", model="hat-1")
    assert served_policy(own) == "checkpoint:hat-1"
    assert found(own, tmp_path) == []
    assert served_policy(own, "hat-2") == "checkpoint:hat-2"
    drafting = job(engine="checkpoint", model="hat-1", mtp=mtp())
    assert served_policy(drafting) == "checkpoint:hat-1+mtp"
    assert served_policy(job(engine="checkpoint", model="hat-1", mtp=MtpServing())) == (
        "checkpoint:hat-1+mtp-lossy"
    )
    assert found(drafting, tmp_path) == []
    assert found(job(engine="checkpoint", model="hat-2"), tmp_path) == ["serve/policy"]


@pytest.mark.parametrize(
    "given",
    [
        {"policy": "builtin", "mtp": mtp()},
        {"mtp": mtp(accept_threshold_single=0.9)},
        {"mtp": mtp(num_steps=2, num_draft_tokens=3)},
    ],
)
def test_our_own_server_drafts_for_a_checkpoint_as_its_policies_do_or_not_at_all(given, tmp_path):
    checkpoint(tmp_path / "c")
    assert "serve/mtp" in found(job(engine="checkpoint", model="c", **given), tmp_path)


def test_our_own_server_too_is_not_started_with_a_head_that_drafts_noise(tmp_path):
    checkpoint(tmp_path / "c", spoil=with_nan)
    made = job(engine="checkpoint", model="c", mtp=mtp())
    assert found(made, tmp_path) == ["serve/mtp-head-non-finite"]


# -- the file


def test_the_file_names_every_error_and_the_nearest_key(tmp_path):
    project = make_project(tmp_path)
    path = tmp_path / "serve.yaml"
    path.write_text(
        "name: x\nengine: sglang\nversion: 0.5.23\nmodel: m\n"
        "mtp: {num_draft_tokens: 9}\noptions: {tp: 2}\n"
    )
    with pytest.raises(BadFile, match="2 errors before anything was started") as told:
        read_job(path, project)
    assert "num_draft_tokens: 4" in str(told.value)
    path.write_text("name: x\nengine: sglang\nmtp: {num_step: 3}\n")
    with pytest.raises(BadFile, match=r"serve.yaml:3") as told:
        read_job(path, project)
    assert "num_steps" in told.value.hint
    with pytest.raises(BadFile, match="Invalid enum value 'vllm'"):
        parse_yaml("name: x\nengine: vllm\n", ServeJob, name="serve.yaml")


# -- what is started


def test_vllm_gets_its_own_words_and_speculates_exactly(tmp_path):
    made = job(engine="vllm-cpu", version=None, mtp=mtp(num_steps=3))
    launch = replica_launch(made, tmp_path, number=0, model="/m", sha256=None, port=5)
    assert launch.words[:3] == ("python", "-m", "vllm.entrypoints.openai.api_server")
    config = launch.words[launch.words.index("--speculative-config") + 1]
    assert json.loads(config) == {"method": "mtp", "num_speculative_tokens": 3}
    assert {"--enforce-eager", "--no-enable-prefix-caching"} <= set(launch.words)
    assert launch.env["VLLM_CPU_KVCACHE_SPACE"] == "1"


def test_each_replica_has_its_own_environment_and_only_loopback_behind_a_router(tmp_path):
    made = msgspec.structs.replace(
        standin(router=True), env={"CUDA_VISIBLE_DEVICES": "{replica}"}, host="0.0.0.0"
    )
    launches = [
        replica_launch(made, tmp_path, number=n, model="m", sha256=None, port=9) for n in (0, 1)
    ]
    assert [x.env["CUDA_VISIBLE_DEVICES"] for x in launches] == ["0", "1"]
    assert all(x.words[x.words.index("--host") + 1] == "127.0.0.1" for x in launches)


def test_the_routers_own_parser_takes_its_command():
    launch_router = pytest.importorskip("sglang_router.launch_router")
    words = router_words(standin(replicas=3, router=True), port=1, metrics_port=2)
    parsed = launch_router.parse_router_args(list(words[3:]))
    assert (parsed.host, parsed.policy, parsed.balance_abs_threshold) == (
        "127.0.0.1",
        "cache_aware",
        1,
    )
