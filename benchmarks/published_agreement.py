"""Published human labels through `stats.agreement`: `python -m benchmarks.published_agreement DIR`.

DIR holds `pandalm/` and `llmbar/Natural/` as their repositories publish them. Prints one line for
each published number's way to count invalid verdicts, beside the other ways.
"""

import json
import sys
from itertools import combinations
from pathlib import Path

from harness_cli.stats.agreement import agreement, krippendorff_alpha, macro_scores, majority

ANNOTATORS = ("annotator1", "annotator2", "annotator3")
WAYS = {"a tie": 0.0, "wrong": "wrong", "dropped": "drop"}


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def pandalm(folder):
    rows = read(folder / "testset-v1.json")
    ratings = [[float(row[name]) for name in ANNOTATORS] for row in rows]
    for i, j in combinations(range(3), 2):
        found = agreement([r[i] for r in ratings], [r[j] for r in ratings])
        print(f"PandaLM annotators {i + 1} and {j + 1}: κ {found.kappa:.4f}")
    print(f"PandaLM annotators: Krippendorff's α {krippendorff_alpha(ratings):.4f}")
    reference = [majority(r) for r in ratings]
    for judge, file, field in (
        ("GPT-3.5", "gpt-3.5-turbo-testset-v1.json", "gpt_result"),
        ("PandaLM-7B", "pandalm-7b-testset-v1.json", "pandalm_result"),
    ):
        said = [str(row[field]) for row in read(folder / file)]
        given = [None if s == "garbage" else 0.0 if s == "Tie" else float(s) for s in said]
        for way, invalid in WAYS.items():
            found = agreement(reference, given, invalid=invalid)
            macro = macro_scores(found)
            print(
                f"PandaLM {judge}, invalid is {way}: n {found.n}, accuracy {found.raw:.4f}, "
                f"κ {found.kappa:.4f}, macro P {macro.precision:.4f} R {macro.recall:.4f} "
                f"F1 {macro.f1:.4f}"
            )


def llmbar(folder):
    for judge in ("ChatGPT_Vanilla", "ChatGPT_Swap", "GPT-4_Vanilla", "GPT-4_Swap"):
        rows = read(folder / f"{judge}_result.json")
        label = [float(row["label"]) for row in rows]
        for swap in (False, True):
            said = [row["results"][-1][f"swap = {swap}"]["winner"] for row in rows]
            given = [float(s) if s in ("1", "2") else None for s in said]
            theirs = [1.0 if s == "1" else 0.0 for s in said]
            found = agreement(label, given)
            read_so = agreement(label, theirs, labels=(0, 1, 2))
            print(
                f"LLMBar Natural {judge}, swap {swap}: accuracy {found.raw:.4f}, "
                f"κ {found.kappa:.4f}, κ as published (all but 1 is 0) {read_so.kappa:.4f}"
            )


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m benchmarks.published_agreement DIR")
    folder = Path(sys.argv[1])
    pandalm(folder / "pandalm")
    llmbar(folder / "llmbar" / "Natural")


if __name__ == "__main__":
    main()
