"""The same manners everywhere: one table over every verb and every command below it."""

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from program import TABLE, call, options
from small_shop import make_shop

from harness_cli.commands._show import step_summary
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

MANNERS = {"--json", "-C", "--directory", "--quiet", "-q", "-v", "--verbose", "--help"}
MANY = {"eval", "edit"}
"""The verbs with more than about eight options of their own: to measure, and to change."""
BUDGET = {"--max-cost", "--max-tokens", "--max-seconds"}
"""The three bounds of one budget, the same wherever models are asked: one thing to know."""


@pytest.mark.parametrize("name", TABLE)
def test_every_command_takes_json_dash_C_quiet_and_dash_v(name):
    assert set(options(TABLE[name])) >= MANNERS - {"--help"}


@pytest.mark.parametrize("name", TABLE)
def test_every_command_and_every_option_says_what_it_does(name):
    command = TABLE[name]
    assert command.help
    assert not [o for o, p in options(command).items() if not p.help]
    assert not [o for o, p in options(command).items() if p.prompt]


@pytest.mark.parametrize("name", [n for n in TABLE if n not in MANY])
def test_a_command_has_about_eight_options_of_its_own(name):
    found = options(TABLE[name])
    own = {id(p) for o, p in found.items() if o not in MANNERS | BUDGET}
    assert len(own) + any(o in BUDGET for o in found) <= 9


GATES = """schema: 1
gates:
  - {name: business, kind: regression, evalset: shop, split: dev, metric: avg, margin: 0.02}
  - {name: approvals, kind: approvals, approvals: 1}
"""
LABEL = {
    "id": "l-1",
    "item_id": "stock-00",
    "reply": "12 are left.",
    "accuracy": 1,
    "effectiveness": 1,
}

DIALOGUE = {
    "task_id": 0,
    "reward": 1.0,
    "info": {"task": {"instruction": "Cancel R1."}, "reward_info": {"reward": 1.0}},
    "traj": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Done."}],
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A real project after two runs, a diagnosis and a proposal; its policy is a script."""
    saved = {n: os.environ.pop(n, None) for n in ("GITHUB_STEP_SUMMARY", "EDITOR", "VISUAL")}
    root = tmp_path_factory.mktemp("manners") / "shop"
    make_shop(root)
    for seed in ("1", "2"):
        assert call(root, "eval", "shop", "--seed", seed, "-q", "--json").code == 0
    assert call(root, "diagnose", "-q").code == 0
    made = call(root, "edit", "--plan-only", "-o", "plan.yaml", "-q")
    assert made.code == 0, made.err
    (root / "gates.yaml").write_text(GATES)
    (root / "labels.jsonl").write_text(json.dumps(LABEL) + "\n")
    (root / "dialogues.json").write_text(json.dumps([DIALOGUE]))
    yield root
    call(root, "serve", "down")
    os.environ.update({n: v for n, v in saved.items() if v is not None})


OK, BAD, PERSON = {0}, {1, 2}, {3}
CASES: list[tuple[str, str, set[int]]] = [
    ("init", "new-shop", OK),
    ("init", ".", {2}),
    ("doctor", "", {0, 1}),
    ("check", "", {0, 2}),
    ("check", "harness_repo/hooks --strict", {0, 2}),
    ("check", "harness_repo/hooks --rewards", {0, 2}),
    ("show skill", "", OK),
    ("show skill", "greet", OK),
    ("show tool", "get_inventory", OK),
    ("show hook", "", OK),
    ("show hook", "no-such", {2}),
    ("show prompt", "--comment hello", OK),
    ("show run", "", OK),
    ("show trajectory", "ITEM", OK),
    ("diff", "HEAD", OK),
    ("augment", "--count 1 --out augmented", OK),
    ("run", "hello", OK),
    ("run", "", {2}),
    ("compare", "", OK),
    ("report", "-o page.html", OK),
    ("report", "no-such", {2}),
    ("view", "--port 70000", {2}),
    ("diagnose", "", OK),
    ("diagnose", "dialogues.json", OK),
    ("diagnose show", "", {0, 2}),
    ("edit", "--plan-only -o other.yaml", OK),
    ("edit", "", PERSON),
    ("edit", "--by-hand", PERSON),
    ("edit show", "plan.yaml", OK),
    ("edit review", "plan.yaml", PERSON),
    ("edit apply", "plan.yaml", PERSON),
    ("edit credit", "", {2}),
    ("edit prune", "-o pruned.yaml", OK),
    ("edit heldout", "--before HEAD --after HEAD --evalset shop --reason r", {2}),
    ("evolve", "--evalset shop", PERSON),
    ("promote", "--plan", OK),
    ("promote", "--no-run --dry-run", {3, 10, 11}),
    ("promote approve", "", {2}),
    ("promote bisect-axes", "", {1}),
    ("rollback", "dev", BAD),
    ("status", "", OK),
    ("log", "--evalset shop", OK),
    ("manifest verify", "", {2}),
    ("manifest sign", "no-such", BAD),
    ("manifest archive", "no-such", BAD),
    ("manifest export", "no-such -o release.json", BAD),
    ("manifest show", "no-such", BAD),
    ("manifest diff", "no-such neither", BAD),
    ("manifest list", "", OK),
    ("incidents", "", OK),
    ("cron", "--younger-than 1h --last-success no-such", {12}),
    ("cron", "", {2}),
    ("runs", "", OK),
    ("runs list", "--evalset shop", OK),
    ("runs show", "", OK),
    ("runs prune", "--dry-run --keep 1", OK),
    ("evalset list", "", OK),
    ("evalset check", "", OK),
    ("evalset digest", "shop", OK),
    ("evalset seal", "shop no-such", {2}),
    ("evalset export", "shop --split dev", OK),
    ("evalset new", "own --agent bare", OK),
    ("evalset split", "own --share dev=0.5 --share test=0.5", {2}),
    ("evalset synth", "no_such_set", {2}),
    ("evalset import", "tau-bench dialogues.json", OK),
    ("export inspect", "-o log.json", OK),
    ("export junit", "-o units.xml", OK),
    ("export otel", "-o traces.jsonl", OK),
    ("export sft", "-o sft --evalset shop --limit 3 --states 0", OK),
    ("export sft", "no-such.yaml -o sft", {2}),
    ("export prefs", "no-such latest -o prefs", {2}),
    ("export rl-tasks", "-o tasks", {1}),
    ("judge agree", "labels.jsonl --evalset shop", OK),
    ("diagnose", "--judge grounded --labels labels.jsonl --evalset shop", OK),
    ("edit", "--judge grounded --plan-only", {2}),
    ("judge calibrate", "", BAD),
    ("judge calibrate", "--labels labels.jsonl --evalset shop --dry-run", OK),
    ("judge show", "", OK),
    ("judge show", "no-such", {2}),
    ("judge pairwise", "latest no-such", {2}),
    ("judge rewards", "", {2}),
    ("judge rewards", "--judge no-such", {2}),
    ("blind make", "latest no-such", {2}),
    ("blind annotate", "", {2}),
    ("blind report", "", {2}),
    ("ab assign", "no-such.csv --salt s --arm a=1", {2}),
    ("ab report", "labels.jsonl", {2}),
    ("tools lock", "", OK),
    ("tools check", "", OK),
    ("tools call", 'get_inventory {"link_id":1}', OK),
    ("hooks test", "", OK),
    ("migrate", "", OK),
    ("serve", "", OK),
    ("serve up", "shop", OK),
    ("serve status", "", OK),
    ("serve logs", "shop", OK),
    ("serve up", "no-such.yaml --dry-run", {2}),
    ("serve switch", "no-such weights", {2}),
    ("serve render", "no-such.yaml", {2}),
    ("serve sandbox", "--harness no-such-rev", {1, 2}),
    ("bench replay", "--evalset shop --warm-up 1", OK),
    ("bench replay", "--job no-such", {2}),
    ("bench report", "no-such", {2}),
    ("bench mtp", "no-such --on shop", {2}),
    ("bench mtp", "shop", {2}),
    ("mtp check", "no-such", {2}),
    ("mtp stitch", "no-such neither", {2}),
    ("train mtp", "no-such.yaml", {2}),
    ("train rl", "no-such.yaml", {2}),
    ("train sft", "no-such.yaml", {2}),
    ("train opd", "no-such.yaml", {2}),
    ("train study", "no-such.yaml", {2}),
    ("train status", "", {0}),
    ("train logs", "no-such", {2}),
    ("train stop", "no-such", {2}),
    ("train figures", "no-such", {2}),
    ("serve logs", "--stats no-such.log", {2}),
    ("serve down", "", OK),
    ("eval", "no_such_set", {2}),
    ("eval", "shop --limit 1", OK),
]


def test_the_cases_cover_the_table():
    assert set(TABLE) - {name for name, _, _ in CASES} == {"demo"}  # accept: it takes minutes


def asked(root: Path, words: str) -> list[str]:
    store = RunStore(Project.find(root).runs)
    item = next(store.newest().results()).item_id if "ITEM" in words else ""
    return words.replace("ITEM", item).split()


@pytest.mark.parametrize(
    ("name", "words", "codes"), CASES, ids=[f"{n} {w}".strip() for n, w, _ in CASES]
)
def test_json_is_alone_on_stdout_and_nobody_is_asked(name, words, codes, shop):
    done = call(shop, *name.split(), *asked(shop, words), "--json")
    assert done.code in codes, done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.out + done.err
    if done.code == 0 or done.out:
        assert json.loads(done.out)["schema"] == 1
    if done.code in (1, 2, 3) and not done.out:
        assert done.err.startswith("error: ") or "Error: " in done.err, done.err
    if done.code == 3:  # which file or command decides
        assert "hint: " in done.err or json.loads(done.out)["hint"]


@pytest.mark.accept
@pytest.mark.timeout(1200)
def test_the_demo_too_is_one_document(tmp_path):
    done = call(tmp_path, "demo", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["schema"] == 1
    assert list(tmp_path.iterdir()) == []


def test_quiet_is_a_prefix_of_nothing_but_results(shop):
    """`-q` leaves stderr to errors."""
    for words in (
        "runs list -q",
        "evalset list -q",
        "migrate -q",
        "manifest list -q",
        "show skill -q",
    ):
        assert call(shop, *words.split()).err == "", words


def test_dash_C_is_as_if_started_there(shop, tmp_path):
    here = call(shop, "evalset", "list", "-q")
    there = call(tmp_path, "evalset", "list", "-q", "-C", str(shop))
    assert here.out == there.out != ""


def test_migrate_says_what_is_current_and_exits_2_at_an_unknown_number(shop):
    assert "moved 0 of" in call(shop, "migrate").err
    gates = shop / "gates.yaml"
    text = gates.read_text()
    gates.write_text(text.replace("schema: 1", "schema: 8"))
    done = call(shop, "migrate", "--json")
    gates.write_text(text)
    assert done.code == 2
    assert "gates.yaml: schema 8 is not known, this version reads 1" in done.err
    states = {f["path"]: f["state"] for f in json.loads(done.out)["files"]}
    assert states["gates.yaml"] == "unknown"
    assert states["harness.yaml"] == "current"


@pytest.mark.parametrize(
    "words",
    [
        "judge agree labels.jsonl --evalset shop --catalogue evalsets/catalogue",
        "eval shop --limit 1 --record tape.jsonl",
        "eval shop --limit 1 --replay tape.jsonl --junit units.xml",
        "edit show plan.yaml",
        "check harness_repo",
    ],
)
def test_files_are_looked_for_and_written_where_dash_C_says(words, shop, tmp_path):
    done = call(tmp_path, *words.split(), "--json", "-C", str(shop))
    assert done.code in (0, 2), done.err
    assert json.loads(done.out)
    assert list(tmp_path.iterdir()) == []


def test_what_a_person_must_decide_names_the_file_or_command(shop):
    for words in ("edit review plan.yaml", "edit apply plan.yaml"):
        done = call(shop, *words.split())
        assert done.code == 3
        assert "harness edit review" in done.err
        assert "plan.yaml" in done.err


def on_terminal(argv: list[str], folder: Path, **environment: str) -> str:
    """What a program writes to a terminal."""
    main_end, its_end = pty.openpty()
    keep = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env={**keep, "TERM": "xterm-256color", **environment},
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        close_fds=True,
    )
    os.close(its_end)
    shown = b""
    end = time.monotonic() + 60
    with contextlib.suppress(OSError):  # EIO: the last writer is gone
        while time.monotonic() < end and select.select([main_end], [], [], 60)[0]:
            data = os.read(main_end, 1 << 16)
            if not data:
                break
            shown += data
    os.close(main_end)
    assert process.wait(timeout=30) == 0, shown.decode()
    return shown.decode()


PROGRAM = "from harness_cli.main import main; import sys; sys.argv[0] = 'harness'; main()"


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "empty NO_COLOR", "dumb"],
)
def test_a_diff_has_colour_where_it_is_welcome(environment, coloured, shop):
    argv = [sys.executable, "-c", PROGRAM, "edit", "show", "plan.yaml"]
    shown = on_terminal(argv, shop, **environment)
    assert ("\x1b[3" in shown) is coloured
    assert ("\x1b" in shown) is coloured


def test_a_table_has_no_escape_code_where_colour_is_not_welcome(shop):
    shown = on_terminal([sys.executable, "-c", PROGRAM, "show", "skill"], shop, NO_COLOR="1")
    assert "item-qa" in shown
    assert "\x1b" not in shown


BAR = """
from harness_cli.commands._progress import progress
from harness_cli.evaluation.gate import Spending
from harness_cli.evaluation.progress import Progress
state = Progress(name="bench", planned=20, spending=Spending())
with progress(quiet=False) as observe:
    for _ in range(20):
        state.counts["passed"] += 1
        observe(state)
"""


@pytest.mark.parametrize(("term", "bar"), [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_gets_a_line_per_tenth_in_place_of_a_bar(term, bar, tmp_path):
    shown = on_terminal([sys.executable, "-c", BAR], tmp_path, TERM=term)
    assert ("\x1b" in shown) is bar
    if not bar:
        assert len(shown.splitlines()) == 10


def test_the_job_summary_is_appended_and_a_place_that_cannot_be_written_ends_nothing(
    tmp_path, monkeypatch, capsys
):
    target = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    step_summary("# one\n")
    step_summary("# two\n")
    assert target.read_text() == "# one\n# two\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "folder"))
    step_summary("# three\n")
    assert "cannot be written" in capsys.readouterr().err
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    step_summary("# four\n")
    assert target.read_text() == "# one\n# two\n"
    assert list(tmp_path.iterdir()) == [target]
