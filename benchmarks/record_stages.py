"""Record real stages of the loop: one where AVG fell, or a whole chain confirmed on held-out items.

    python -m benchmarks.record_stages OUT            # tests/loop/recorded in this repository
    python -m benchmarks.record_stages --chain OUT [--trials N] [--stages N]
    python -m benchmarks.record_stages --confirm OUT

Without an option, what tests show `harness log` with. The shipped base on `builtin`: evaluate dev,
diagnose, take every edit of the deterministic proposer, evaluate again. Of the categories with at
least 20 items, the one whose AVG fell most becomes an evalset of its own, and base and evolution
are evaluated and diagnosed on it. No edit is made up. The category is chosen BECAUSE it fell, so
nothing follows from the record about the edits. Exits 1 where none fell. OUT gets a bundle of the
repository and the two run folders, less their journals.

With `--chain`: base, then stage after stage on dev alone, each from the diagnosis of the selected
one, with N rollouts spent on trying edits (12,000) and every edit that is proposed accepted by
this script; a stage is selected where AVG rose. OUT gets `chain.json` and the project as it was
left; more stages go on from there. When no more is to be changed, `--confirm` opens the sealed
split, for the base and the selected stage.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import fmean

LEAST = 20
NAME = "fell"
KEPT = ("run.json", "report.json", "diagnosis.json")


def verb(folder: Path, *words: str) -> str:
    """Standard output of `harness …` in a folder; an exit code other than 0 is an error."""
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", *words],
        cwd=folder, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.PIPE)


def make(folder: Path) -> Path:
    """The shipped project, its items and runs outside the repository."""
    verb(folder, "init", "shop", "--quiet")
    project = folder / "shop"
    shutil.rmtree(project / ".git")
    with (project / ".gitignore").open("a") as file:
        file.write("evalsets/\nmanifests/\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "The base harness")
    return project


def run(project: Path, evalset: str, *words: str) -> Path:
    """A finished run's folder."""
    said = json.loads(verb(project, "eval", evalset, "--json", "--quiet", *words))
    return project / ".harness" / "runs" / said["run"]["id"]


def scores(project: Path, folder: Path) -> dict[str, tuple[str, float]]:
    """Item → category and AVG."""
    from harness_cli.store.runs import RunFolder

    found = {}
    for result in RunFolder(folder).results():
        found[result.item_id] = (result.category, result.scores["avg"])
    return found


def fallen(before: dict, after: dict) -> tuple[str, list[str]] | None:
    """The category whose AVG fell most, and its items."""
    items = defaultdict(list)
    for item, (category, _) in before.items():
        items[category].append(item)
    moved = {
        category: fmean(after[i][1] - before[i][1] for i in ids)
        for category, ids in items.items()
        if len(ids) >= LEAST
    }
    for category, change in sorted(moved.items(), key=lambda pair: pair[1]):
        print(
            json.dumps({"category": category, "n": len(items[category]), "avg": round(change, 4)})
        )
    category = min(moved, key=lambda name: moved[name])
    return (category, items[category]) if moved[category] < 0 else None


def subset(project: Path, category: str, ids: list[str]) -> None:
    """These items as an evalset of their own."""
    folder = project / "evalsets" / NAME
    folder.mkdir()
    lines = (project / "evalsets/live_stream_qa/items.jsonl").read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["id"] in set(ids)]
    (folder / "items.jsonl").write_text("".join(f"{line}\n" for line in kept))
    (folder / "evalset.yaml").write_text(
        f"schema: 1\nname: {NAME}\nsplits: {{dev: {len(kept)}}}\n"
        f"notes: The items of `{category}`, whose AVG fell.\n"
    )


def compared(project: Path, before: Path, after: Path) -> dict:
    """Metric → means and paired difference; the items fixed and broken."""
    said = json.loads(verb(project, "compare", before.name, after.name, "--json"))
    rows = {m["metric"]: m for m in said["metrics"]}
    return {
        "metrics": {
            name: {"before": m["mean_a"], "after": m["mean_b"], **m["paired"]}
            for name, m in rows.items()
            if name in ("accuracy", "effectiveness", "avg")
        },
        "fixed": len(said["fixed"]),
        "broken": len(said["broken"]),
    }


def classes(project: Path, run_folder: Path) -> list[dict]:
    """What is left in a run, class by class."""
    made = json.loads(verb(project, "diagnose", run_folder.name, "--json"))
    return [
        {"class": c["label"], "failures": c["size"], "systematic": c["systematic"]}
        for c in made["clusters"]
    ]


def chain(out: Path, *, stages: int, trials: int) -> int:
    """Base and stages on dev alone; what was found goes into `chain.json`, and on from there."""
    project = out / "shop"
    if (out / "chain.json").exists():
        told = json.loads((out / "chain.json").read_text())
    else:
        out.mkdir(parents=True)
        project = make(out)
        base = run(project, "live_stream_qa").name
        told = {"base": base, "selected": base, "branch": "main", "stages": []}
    for number in range(len(told["stages"]) + 1, stages + 1):
        stage = next_stage(project, told, number, trials)
        if stage is None:
            break
        told["stages"].append(stage)
        if stage["gained"]:
            told |= {"selected": stage["run"], "branch": stage["branch"]}
        keep(out, told)
        print(json.dumps({"stage": stage["branch"], "avg": stage["metrics"]["avg"]}), flush=True)
        if not stage["gained"]:
            break
    runs = project / ".harness" / "runs"
    selected = runs / told["selected"]
    if told["selected"] != told["base"]:
        told["dev"] = compared(project, runs / told["base"], selected)
    told["left"] = classes(project, selected)
    keep(out, told)
    print(json.dumps({k: told.get(k) for k in ("branch", "dev", "left")}, indent=2))
    return 0


def next_stage(project: Path, told: dict, number: int, trials: int) -> dict | None:
    """One turn on the selected harness; None where nothing gains when it is tried."""
    selected = project / ".harness" / "runs" / told["selected"]
    left, file = classes(project, selected), f"p{number}.yaml"
    words = ("--run", selected.name, "--trials", str(trials), "--plan-only", "-o", file)
    edits = json.loads(verb(project, "edit", *words, "--json"))["proposal"]["edits"]
    if not edits:
        return None
    done = verb(project, "edit", "apply", file, "--accept", "all", "--by", "chain", "--json")
    branch = json.loads(done)["applied"]["branch"]
    made = run(project, "live_stream_qa", "--harness", branch)
    found = compared(project, selected, made)
    return {
        "branch": branch,
        "run": made.name,
        "gained": found["metrics"]["avg"]["mean"] > 0,
        **found,
        "edits": [{"id": e["id"], "why": e["rationale"]} for e in edits],
        "left_before": left,
    }


def confirm(out: Path) -> int:
    """Open the sealed split for the base and the selected stage of a chain that has ended."""
    told = json.loads((out / "chain.json").read_text())
    reason = "the chain on dev has ended: its selected stage is confirmed against the base"
    words = ("live_stream_qa", "--split", "test", "--reason", reason, "--harness")
    before, after = (run(out / "shop", *words, rev) for rev in ("main", told["branch"]))
    told["test"] = compared(out / "shop", before, after)
    keep(out, told)
    print(json.dumps(told["test"], indent=2))
    return 0


def keep(out: Path, told: dict) -> None:
    (out / "chain.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--chain", action="store_true")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--trials", type=int, default=12_000)
    return parser.parse_args()


def main() -> int:
    options = asked()
    out = options.out.resolve()
    if options.confirm:
        return confirm(out)
    if options.chain:
        return chain(out, stages=options.stages, trials=options.trials)
    with tempfile.TemporaryDirectory(prefix="harness-stages-") as folder:
        project = make(Path(folder))
        base = run(project, "live_stream_qa")
        verb(project, "diagnose", "--quiet")
        verb(project, "edit", "--plan-only", "-o", "p.yaml", "--quiet")
        verb(project, "edit", "apply", "p.yaml", "--accept", "all", "--by", "record_stages")
        evolved = run(project, "live_stream_qa", "--harness", "evolve/1")
        found = fallen(scores(project, base), scores(project, evolved))
        if found is None:
            print("no category fell: nothing to record")
            return 1
        subset(project, *found)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for words in ((), ("--harness", "evolve/1")):
            made = run(project, NAME, *words)
            verb(project, "diagnose", made.name, "--quiet")
            (out / "runs" / made.name).mkdir(parents=True)
            for name in KEPT:
                shutil.copyfile(made / name, out / "runs" / made.name / name)
        git(project, "bundle", "create", "-q", str(out / "harness.bundle"), "main", "evolve/1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
