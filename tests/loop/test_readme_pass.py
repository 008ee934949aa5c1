"""The README's one pass through the loop, command by command as it stands there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def commands() -> list[list[str]]:
    block = README.read_text().split("## One pass through the loop", 1)[1].split("\n## ", 1)[0]
    lines = [x.split("  #")[0].strip() for x in block.splitlines() if x.startswith("    harness ")]
    return [shlex.split(re.sub(r" && cd shop$", "", line))[1:] for line in lines]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_command_of_the_readme_does_what_it_says_in_a_fresh_folder(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    ran, folder = [], tmp_path
    for words in commands():
        done = subprocess.run(
            [sys.executable, "-m", "harness_cli.main", *words],
            cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        # The pass promotes one pair, so there is none to go back to: the README says so.
        assert done.returncode == (1 if words[0] == "rollback" else 0), (words, done.stderr)
        if words[0] == "init":
            folder = tmp_path / words[1]
        ran.append(words[0])
        said = {"compare": "pairs", "promote": "serves on channel dev", "manifest": "verified"}
        assert said.get(words[0], "") in done.stdout, (words, done.stdout)
    assert " ".join(ran) == (
        "init eval diagnose edit edit edit eval compare promote manifest rollback"
    )


CHAIN = (
    'harness() { "$PYTHON" -m harness_cli.main "$@"; }; '
    "harness init x && cd x && harness eval live_stream_qa --limit 8 && harness diagnose && "
    "harness edit --plan-only -o p.yaml && harness edit show p.yaml && "
    "harness edit apply p.yaml --accept all && "
    "harness eval live_stream_qa --limit 8 --harness evolve/latest && "
    "harness compare && harness promote"
)
"""One line for a script, whether or not there is anything to propose; 8 items hold too little."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_chain_of_eight_items_has_nothing_to_propose_and_ends_inconclusive(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    done = subprocess.run(
        ["bash", "-c", CHAIN], cwd=tmp_path, env={**env, "PYTHON": sys.executable},
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 11, done.stderr
    said = [
        "0 edits; read: harness edit show p.yaml",
        "nothing to apply, the harness stays as it is",
        "next: harness eval --harness evolve/latest",
        "both runs are of one policy in one harness: what differs is noise",
    ]
    for words in said:
        assert words in done.stderr, (words, done.stderr)
    assert done.stdout.count("nothing to propose: ") == 1  # `edit show` reads it from the file
    assert "fixed: 0 of 8" in done.stdout
    assert "8 scored items, fewer than 30" in done.stdout
    assert "decision: INCONCLUSIVE" in done.stdout
    listed = subprocess.run(
        ["git", "for-each-ref", "refs/heads", "--format=%(refname:short)"],
        cwd=tmp_path / "x", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert listed.stdout.split() == ["main"]
