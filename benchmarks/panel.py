"""A panel adds its own model calls and nothing else: wall over the floor of those calls.

The replies are given (`--responses`), so every call of the run is a judge's. A vote is three calls
(two rubrics, the verdict) in the shipped judge's harness, journaled one by one. The floor is
think time x calls / concurrency; the bare loop beside it sends the same messages.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.floor import result
from benchmarks.panel_bare import CALLS
from benchmarks.process import harness, run
from benchmarks.project import commit, make_project, write
from benchmarks.stub import Stub, stub

ROOT = Path(__file__).parents[1]
THINK_MS = 1000
"""A judge's answer with its reasons takes about a second and more."""
CONCURRENCY = 64
MEMBERS = ("a", "b", "c")
ROUNDS = 3


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    items, rounds = (64, 1) if quick else (256, ROUNDS)
    with stub(folder, think_ms=THINK_MS) as endpoint:
        project = judged_project(folder / "panel", items, endpoint)
        case = case_file(project)
        pairs = [_pair(project, endpoint, items, case) for _ in range(rounds)]
        yield from _over_floor(pairs, items)
        yield _cached(project, items, pairs)


def judged_project(folder: Path, items: int, endpoint: Stub) -> Path:
    """The bench project with a panel of three policies and a given reply to every item."""
    project = make_project(folder, items, endpoint.url)
    shutil.copytree(ROOT / "harness_repo" / "judges", project / "harness_repo" / "judges")
    served = {"kind": "openai", "base_url": endpoint.url, "stall_timeout_s": 60}
    policies = {name: {**served, "model": name} for name in ("stub", *MEMBERS)}
    judges = {"final": {"panel": list(MEMBERS)}}
    config = {"schema": 1, "policy": "stub", "policies": policies, "judges": judges}
    write(project / "harness.yaml", config)
    lines = [json.dumps({"id": f"bench-{n:06d}", "reply": "It is 42."}) for n in range(items)]
    (project / "replies.jsonl").write_text("\n".join(lines) + "\n")
    commit(project)
    return project


def case_file(project: Path) -> Path:
    """Messages, tools and rubrics of one vote, for the bare loop."""
    from harness_cli.evaluation.evalsets import load_evalset
    from harness_cli.harness.prompts import render
    from harness_cli.harness.tools import offered
    from harness_cli.judges.panel.case import Case
    from harness_cli.judges.panel.opening import judge_state, offered_under
    from harness_cli.records.chat import ChatReply
    from harness_cli.records.trajectory import Step, Trajectory
    from harness_cli.store.project import Project

    evalset = load_evalset(Project.read(project), "bench", split=None)
    item = next(iter(evalset.items))
    step = Step(index=0, messages=(), reply=ChatReply(content="It is 42."))
    case = Case(item, Trajectory(request_id="r", steps=(step,), reply="It is 42."), evalset.world)
    state = offered_under(judge_state(project / "harness_repo/judges/final"), "default")
    rubrics = [state.skill(f"rubric-{name}").body for name in ("accuracy", "effectiveness")]
    made = {
        "messages": list(render(state, case.request, evalset.world)),
        "tools": list(offered(state)),
        "rubrics": rubrics,
    }
    path = project / "case.json"
    path.write_text(json.dumps(made))
    return path


def _pair(project: Path, endpoint: Stub, items: int, case: Path) -> tuple[dict, dict]:
    votes, url = items * len(MEMBERS), f"{endpoint.url}/chat/completions"
    words = [sys.executable, "-m", "benchmarks.panel_bare", url, votes, CONCURRENCY, case]
    bare = json.loads(run(words, ROOT).out)
    return _judged(project, "--fresh-verdicts"), bare


def _judged(project: Path, *more: str) -> dict:
    words = ["eval", "bench", "--judge", "final", "--responses", "replies.jsonl", "--json"]
    report = json.loads(
        harness(project, *words, "--concurrency", CONCURRENCY, "--quiet", *more).out
    )
    unscored = report["usage"]["judge"]["unscored"]
    if unscored or report["counts"]["passed"] != report["planned"]:
        raise SystemExit(f"eval: {report['counts']}, {unscored} votes unscored")
    return {**report["timing"], "judge": report["usage"]["judge"]}


def _over_floor(pairs: list[tuple[dict, dict]], items: int) -> Iterator[dict]:
    calls = CALLS * len(MEMBERS) * items
    floor = THINK_MS / 1000 * calls / CONCURRENCY
    ours = median(judged["wall_s"] for judged, _ in pairs) / floor
    bare = median(loop["wall_s"] for _, loop in pairs) / floor
    cpu = median(1000 * judged["cpu_s"] / calls for judged, _ in pairs)
    yield result(
        f"panel wall / floor of its calls at concurrency {CONCURRENCY}",
        ours,
        "<= 1.2",
        ours <= 1.2,
        f"{items} items x {len(MEMBERS)} votes x {CALLS} calls of {THINK_MS} ms, {len(pairs)} "
        f"rounds; the bare aiohttp loop beside it {bare:.2f} x floor; {cpu:.2f} ms CPU a call",
    )
    against = median(
        (judged["cpu_s"] / calls) / (loop["cpu_s"] / loop["calls"]) for judged, loop in pairs
    )
    yield result(
        "panel CPU per call / bare aiohttp loop",
        against,
        "<= 3.5",
        against <= 3.5,
        "prompts, hooks, schema checks, journal, votes and reports included",
    )


def _cached(project: Path, items: int, pairs: list[tuple[dict, dict]]) -> dict:
    """The same verdicts once more, from the cache: no call at all."""
    again = _judged(project)
    if again["judge"]["calls"]:
        raise SystemExit(f"{again['judge']['calls']} calls although every vote was cached")
    fresh = median(judged["wall_s"] for judged, _ in pairs)
    share = again["wall_s"] / fresh
    ms = 1000 * again["wall_s"] / items
    how = f"{items} items, {ms:.2f} ms each, 0 model calls"
    return result("cached panel wall / fresh panel wall", share, "<= 0.1", share <= 0.1, how)
