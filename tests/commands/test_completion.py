"""Shell completion through the protocol of the shells, on a project made of names alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_startup import HEAVY

PROGRAM = """
import atexit, sys
sys.argv[0] = "harness"
from harness_cli.main import main
atexit.register(lambda: print("MODULES", *sys.modules, file=sys.stderr))
main()
"""
SETTINGS = """# policies: {not: this}
schema: 1
runs: "kept/runs"   # elsewhere
policies:
  builtin: {kind: builtin}
  # commented: {kind: openai}
  flash:
    kind: openai
    model: m
judges: {grounded: {kind: grounded}, strict: {kind: grounded}}
limits:
  night: {tool_s: 5}
"""
EVALSET = "schema: 1\nname: x\nsplits:\n  dev: 3\n  held-out: 2\nseal: {splits: [held-out]}\n"
ITEMS = (
    '{"expect": {"tools": [{"id": "chat-tool"}]}, "id": "chat-1", "split": "dev"}\n'
    'no JSON "chat-\n'
    '{"id": "chat-2", "request": {"comments": []}}\n'
    '{"id": "chat-9", "split": "held-out"}\n'
) + "".join(f'{{"id": "many-{n:03}"}}\n' for n in range(300))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("shop")
    files = {
        "harness.yaml": SETTINGS,
        "kept/runs/20260101-000000-000aaaa/run.json": "{}",
        "kept/runs/20260102-000000-000bbbb/run.json": "not even JSON",
        "kept/runs/no-run/notes": "",
        "evalsets/chat_qa/evalset.yaml": EVALSET,
        "evalsets/chat_qa/items.jsonl": ITEMS,
        "evalsets/code_qa/evalset.yaml": "schema: 1\n",
        "evalsets/code_qa/items.jsonl": '{"id": "code-1"}\n',
        "evalsets/catalogue/rooms.yaml": "",
        "manifests/m-1.json": "{}",
        "manifests/channels/dev.json": "{}",
        "harness_repo/skills/greet/SKILL.md": "",
        "harness_repo/tools/get_price.yaml": "",
        "harness_repo/tools/mcp.yaml": "",
        "harness_repo/hooks/length.yaml": "",
        "inner/folder/keep": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def ask(words: str, folder: Path, shell: str = "bash", **more: str) -> tuple[list[str], set[str]]:
    """What the shell offers for the last word, and the modules that were loaded."""
    given = words.split(" ")
    environment = {
        **os.environ,
        "_HARNESS_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(given) - 1),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env=environment, capture_output=True, text=True
    )
    noise, _, modules = done.stderr.partition("MODULES")
    assert not noise, noise
    return [row for row in done.stdout.splitlines() if row], set(modules.split())


RUNS = ["20260102-000000-000bbbb", "20260101-000000-000aaaa"]
CASES = {
    "harness eva": ["eval", "evalset"],
    "harness edit a": ["apply"],
    "harness edit re": ["review"],
    "harness runs s": ["show"],
    "harness diagnose ": ["show", *RUNS, "latest"],
    "harness diagnose show ": [*RUNS, "latest"],
    "harness compare 20260101": RUNS[1:],
    "harness compare 20260101-000000-000aaaa 2026010": RUNS,
    "harness edit --run 20260102": RUNS[:1],
    "harness eval --resume 2026": RUNS,
    "harness promote la": ["latest"],
    "harness show run ": [*RUNS, "latest"],
    "harness eval ": ["chat_qa", "code_qa"],
    "harness eval chat_qa co": ["code_qa"],
    "harness evalset seal chat_qa ": ["dev", "held-out"],
    "harness log --evalset ch": ["chat_qa"],
    "harness eval --policy ": ["builtin", "flash"],
    "harness run --policy fl": ["flash"],
    "harness serve up ": ["builtin", "flash"],
    "harness eval --judge ": ["grounded", "strict", "none"],
    "harness eval --profile ": ["offline", "production", "replay", "night"],
    "harness eval --if-locked ": ["skip", "wait", "fail"],
    "harness run --item chat-": ["chat-1", "chat-2"],
    "harness run --item code": ["code-1"],
    "harness run --item many-": [f"many-{n:03}" for n in range(100)],
    "harness show prompt --item ch": ["chat-1", "chat-2"],
    "harness show prompt --evalset code_qa --item c": ["code-1"],
    "harness show trajectory chat-2": ["chat-2"],
    "harness rollback ": ["dev"],
    "harness manifest show ": ["m-1"],
    "harness show skill ": ["greet"],
    "harness tools call ": ["get_price"],
    "harness hooks test --hook ": ["length"],
    "harness init --": ["--directory", "--json", "--quiet", "--verbose", "--help"],
    "harness runs prune --dr": ["--dry-run"],
    "harness edit --pl": ["--plan-only"],
    "harness serve logs --fo": ["--follow"],
}


@pytest.mark.parametrize("words", CASES, ids=str)
def test_bash_is_offered_what_the_project_has(words, place):
    offered, modules = ask(words, place / "inner" / "folder")
    assert offered == CASES[words]
    assert not HEAVY & modules
    assert "harness_cli.store.project" not in modules


def test_the_folder_of_dash_C_is_looked_at(place, tmp_path):
    assert ask("harness eval --policy ", tmp_path)[0] == []
    assert ask(f"harness eval -C {place} --policy ", tmp_path)[0] == ["builtin", "flash"]
    assert ask(f"harness eval -C {place / 'gone'} --policy ", tmp_path)[0] == ["builtin", "flash"]


def test_a_setting_from_the_environment_wins(place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "evalset.yaml").write_text("schema: 1\n")
    assert ask("harness eval ", place, HARNESS_EVALSETS=str(tmp_path))[0] == ["elsewhere"]


def test_zsh_and_fish_are_offered_descriptions_without_rich(place):
    shown, modules = ask("harness ru", place, "fish")
    assert shown == [
        "run\tOne request through the agent, step by step",
        "runs\tList, show, prune runs",
    ]
    assert not HEAVY & modules
    shown, modules = ask("harness edit re", place, "zsh")
    assert shown == [
        """_arguments '*: :(("review":"Decide the undecided hunks of a proposal..."))'"""
    ]
    assert not HEAVY & modules


def test_a_key_press_writes_no_log(place, tmp_path):
    log = tmp_path / "log"
    ask("harness -v eval ", place, HARNESS_LOG=str(log))
    assert not log.exists()


@pytest.mark.parametrize("text", ["", "policies\n", "policies:\n", "\x00\xff: [", "- a\n- b\n"])
def test_settings_that_are_broken_offer_nothing_and_say_nothing(text, tmp_path):
    (tmp_path / "harness.yaml").write_text(text)
    assert ask("harness eval --policy ", tmp_path)[0] == []


def test_a_real_bash_completes_with_the_script_of_the_program(place, tmp_path):
    """The script bash sources, the function it defines, its reply."""
    bash = shutil.which("bash")
    assert bash
    program = tmp_path / "harness"
    program.write_text(f"#!{sys.executable}\nfrom harness_cli.main import main\nmain()\n")
    program.chmod(0o755)
    script = """
        eval "$(_HARNESS_COMPLETE=source_bash harness)"
        COMP_WORDS=(harness eval chat); COMP_CWORD=2
        _harness_completion harness
        printf '%s\\n' "${COMPREPLY[@]}"
        complete -p harness
    """
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        cwd=place,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == [
        "chat_qa",
        "complete -o default -F _harness_completion harness",
    ], done.stderr
