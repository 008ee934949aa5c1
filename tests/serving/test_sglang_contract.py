"""Every generated command parses under the options of the real server, as argparse has them.

The parsers are built from the tables in the package, which are compared with the snapshots of the
shared folder where that lies beside this checkout: ambiguous prefixes and options that a version
lacks are errors. Under `make accept` the real parser of a downloaded wheel reads them too.
"""

import argparse
import contextlib
import io
import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.records.serve_job import (
    Admission,
    MtpServing,
    Parallelism,
    Parsers,
    ServeJob,
)
from harness_cli.serving.sglang.command import sglang_words
from harness_cli.serving.sglang.options import TABLES, table
from harness_cli.serving.sglang.rules import job_findings

SNAPSHOTS = Path(__file__).parents[2].parent / "shared" / "data" / "sglang"
needs_shared = pytest.mark.skipif(
    not SNAPSHOTS.is_dir(), reason="the shared folder is not beside this checkout"
)


def snapshot(version):
    return json.loads((SNAPSHOTS / f"server_args_{version}.json").read_text())


def parser_of(version):
    """argparse as the server builds it, prefix matching and all."""
    parser = argparse.ArgumentParser()
    for option in table(version).values():
        words = [f"--{name}" for name in (option.name, *option.aliases)]
        if option.kind == "flag":
            parser.add_argument(*words, action="store_true")
            continue
        nargs = {"one": None, "maybe": "?", "many": "*"}[option.kind]
        parser.add_argument(*words, nargs=nargs, choices=option.choices or None)
    return parser


def parse(parser, words):
    """The namespace, or the parser's own complaint."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            return parser.parse_args(list(words)), ""
        except SystemExit:
            return None, said.getvalue()


MTP = {
    "off": None,
    "paper": MtpServing(),
    "exact": MtpServing(accept_threshold_single=1.0, accept_threshold_acc=1.0),
    "sampling": MtpServing(
        accept_threshold_single=1.0, accept_threshold_acc=1.0, rejection_sampling=True
    ),
    "adaptive": MtpServing(adaptive=True),
    "tree": MtpServing(num_steps=3, eagle_topk=4, num_draft_tokens=16),
    "own draft": MtpServing(algorithm="EAGLE", draft_model_path="/draft"),
}


def job(version, mtp, **more):
    return ServeJob(name="x", engine="sglang", version=version, model="/m", mtp=mtp, **more)


def words_of(made, sha256=None):
    words = sglang_words(made, model="/m", host="127.0.0.1", port=30000, sha256=sha256)
    assert words[:3] == ("python", "-m", "sglang.launch_server")
    return words[3:]


@pytest.mark.parametrize("version", TABLES)
def test_every_generated_command_parses_under_the_snapshot(version):
    parser = parser_of(version)
    shapes = product(MTP.values(), (Parsers(), Parsers(tool_call=None, reasoning=None)), (1, 2))
    for mtp, parsers, dp in shapes:
        made = job(version, mtp, parsers=parsers, parallelism=Parallelism(tp=2, dp=dp),
                   options={"mem-fraction-static": 0.85, "disable-radix-cache": True,
                            "cuda-graph-bs-decode": (1, 2, 4)})  # fmt: skip
        assert not [f for f in job_findings(made) if f.level == "error"]
        words = words_of(made, "ab" * 32)
        parsed, said = parse(parser, words)
        assert parsed is not None, said
        assert parsed.tp_size == "2"
        assert parsed.weight_version == "ab" * 8
        assert parsed.cuda_graph_bs_decode == ["1", "2", "4"]
        assert parsed.speculative_algorithm == (mtp.algorithm if mtp else None)
        # Full names only: no word is a prefix or an alias.
        assert all(word[2:] in table(version) for word in words if word.startswith("--"))


def test_the_papers_command_comes_out_as_table_19_has_it():
    parsed, _ = parse(parser_of("0.5.23"), words_of(job("0.5.23", MtpServing())))
    assert (
        parsed.speculative_algorithm, parsed.speculative_num_steps, parsed.speculative_eagle_topk,
        parsed.speculative_num_draft_tokens, parsed.speculative_accept_threshold_single,
        parsed.speculative_accept_threshold_acc, parsed.dtype, parsed.tp_size, parsed.pp_size,
    ) == ("NEXTN", "3", "1", "4", "0.5", "0.7", "bfloat16", "1", "1")  # fmt: skip


@needs_shared
@pytest.mark.parametrize("version", TABLES)
def test_the_tables_in_the_package_are_the_snapshots(version):
    known, real = table(version), snapshot(version)
    assert {f"--{name}" for name in known} == set(real)
    for name, option in known.items():
        told = real[f"--{name}"]
        assert list(option.aliases) == [a[2:] for a in told["aliases"]]
        assert list(option.choices) == [str(c) for c in told["choices"] or ()]
        assert option.deprecated == told["deprecated"]
        assert (option.kind == "flag") == told["flag"]
        assert (option.kind == "many") == (told["nargs"] in ("+", "*"))
        assert (option.kind == "maybe") == (told["nargs"] == "?")


@pytest.mark.parametrize(
    "words",
    [
        ["--pp", "1"],
        ["--speculative-draft", "x"],
        ["--speculative-accept-threshold", "0.5"],
        ["--mamba-scheduler-strategy", "extra_buffer"],
        ["--cuda-graph-max-bs", "8"],
    ],
)
def test_what_the_validator_refuses_the_real_parser_refuses_too(words):
    _, said = parse(parser_of("0.5.23"), ["--model-path", "/m", *words])
    assert "ambiguous option" in said or "unrecognized arguments" in said
    name = words[0][2:]
    found = list(job_findings(job("0.5.23", None, options={name: words[1]})))
    assert [f.level for f in found] == ["error"]


@given(
    steps=st.integers(1, 7),
    limit=st.integers(1, 64),
    queue=st.integers(0, 512),
    single=st.floats(0.01, 1.0),
    acc=st.floats(0.01, 1.0),
    version=st.sampled_from(TABLES),
)
def test_any_sound_job_parses(steps, limit, queue, single, acc, version):
    mtp = MtpServing(
        num_steps=steps,
        num_draft_tokens=steps + 1,
        accept_threshold_single=single,
        accept_threshold_acc=acc,
    )
    made = job(version, mtp, admission=Admission(per_replica=limit, queue=queue))
    assert not [f for f in job_findings(made) if f.level == "error"]
    parsed, said = parse(_parsers[version], words_of(made))
    assert parsed is not None, said
    assert float(parsed.speculative_accept_threshold_single) == pytest.approx(single, rel=1e-5)


_parsers = {v: parser_of(v) for v in TABLES}

READ = """
import json, sys
from sglang.srt.server_args import ServerArgs
import argparse
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
for words in json.load(sys.stdin):
    parser.parse_args(words)
print("parsed")
"""
PARSER_NEEDS = (
    "triton IPython traitlets decorator stack_data executing asttokens pure_eval pexpect "
    "ptyprocess matplotlib-inline prompt_toolkit wcwidth jedi parso ipython_pygments_lexers "
    "pybase64 pyzmq psutil orjson starlette packaging pillow requests charset_normalizer urllib3"
)
"""What importing SGLang's parser asks for beside this environment (0.5.22, 0.5.23)."""


@pytest.mark.accept
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", TABLES)
def test_the_real_parser_of_the_wheel_takes_every_command(version, tmp_path):
    """Needs a package index, 1 GB of disk and a minute or two; torch is this environment's."""
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    (site,) = tmp_path.glob("venv/lib/python*/site-packages")
    (site / "here.pth").write_text(str(Path(msgspec.__file__).parents[1]) + "\n")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    wanted = [*PARSER_NEEDS.split(), f"sglang=={version}"]
    done = subprocess.run([*install, *wanted], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("SGLang cannot be installed here")
    commands = [words_of(job(version, mtp), "ab" * 32) for mtp in MTP.values()]
    done = subprocess.run(
        [python, "-c", READ], input=json.dumps(commands), capture_output=True, text=True
    )
    assert done.stdout.strip().endswith("parsed"), done.stderr[-2000:]
