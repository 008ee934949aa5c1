"""Record a real stage of the loop where AVG fell: what tests show `harness log` with.

    python -m benchmarks.record_stages OUT            # tests/loop/recorded in this repository

The shipped base on `builtin`: evaluate dev, diagnose, take every edit of the deterministic
proposer, evaluate again. Of the categories with at least 20 items, the one whose AVG fell most
becomes an evalset of its own, and base and evolution are evaluated and diagnosed on it. No edit is
made up. The category is chosen BECAUSE it fell, so nothing follows from the record about the edits.
Exits 1 where none fell. OUT gets a bundle of the repository and the two run folders, less their
journals.
"""

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


def main() -> int:
    out = Path(sys.argv[1]).resolve()
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
