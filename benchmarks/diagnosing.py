"""A diagnosis of 50,000 failures over TF-IDF and SVD of the same texts, and its peak memory.

The failures are made up: twelve leading facts, comment and reply out of the words of the dev items
of `live_stream_qa` (both languages), so that word vectors meet real words. Each way to count words
(`tfidf`, `static`) is diagnosed in a process of its own, after TF-IDF and SVD alone in the same
process: CPU seconds over CPU seconds, and the peak of everything.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.floor import result
from benchmarks.process import run

ROOT = Path(__file__).parents[1]
ITEMS = ROOT / "evalsets/live_stream_qa/items.jsonl"
KINDS = ("tfidf", "static")
RATIO, GIB = 2.0, 1.5


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """Two objects a kind of vectors."""
    n = 5_000 if quick else 50_000
    for kind in KINDS:
        said = json.loads(run([sys.executable, "-m", "benchmarks.diagnosing", kind, n], ROOT).out)
        ratio, peak = said["diagnosis_s"] / said["vectors_s"], said["peak_mib"] / 1024
        how = (
            f"{n} failures; TF-IDF and SVD {said['vectors_s']:.1f} s of CPU, the diagnosis "
            f"{said['diagnosis_s']:.1f} s; {said['classes']} classes, "
            f"{100 * said['unexplained']:.1f} % unexplained"
        )
        name = f"diagnosis by {kind} vectors / TF-IDF and SVD, CPU"
        yield result(name, ratio, f"<= {RATIO:g}", ratio <= RATIO, how)
        yield result(f"GiB at most, {kind}", peak, f"< {GIB}", peak < GIB, "of the whole process")


def failures(n: int) -> Iterator:
    """`n` failures of twelve kinds."""
    from harness_cli.evolution.failure import Failure, Observation, Seen

    draw = random.Random(1)
    comments = [
        comment["text"]
        for line in ITEMS.read_text().splitlines()
        if (item := json.loads(line)).get("split", "dev") == "dev"
        for comment in item["request"]["comments"]
    ]
    for i in range(n):
        kind = draw.randrange(12)
        topic = comments[kind * 17 % len(comments)]
        yield Failure(
            seen=Seen(
                item_id=f"i{i:06}",
                category="c",
                state="failed",
                comment=f"{draw.choice(comments)} {topic}",
            ),
            reply=" ".join(draw.sample(comments, 2)),
            observations=(Observation(kind="tool_not_called", detail=f"t{kind}", step=1),),
        )


def measured(kind: str, n: int) -> dict:
    """Seconds of CPU of both, and the peak of this process."""
    from threadpoolctl import threadpool_limits

    from harness_cli.evolution import clusters
    from harness_cli.evolution.diagnose import Material, Subject, diagnose

    found = tuple(failures(n))
    warm = found[:200]
    diagnose(Material(warm, tuple(f.seen for f in warm)), Subject("r", "h", "e"), vectors=kind)
    with threadpool_limits(limits=1):  # as the diagnosis has it: idle threads spin, and count
        alone, _ = cpu_of(lambda: clusters._vectors([clusters.tokens(f) for f in found]))
    seen = tuple(f.seen for f in found)
    spent, made = cpu_of(
        lambda: diagnose(Material(found, seen), Subject("r", "h", "e"), vectors=kind)
    )
    return {
        "vectors_s": alone,
        "diagnosis_s": spent,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "classes": len(made.clusters),
        "unexplained": made.unexplained,
    }


def cpu_of(work: Callable[[], object]) -> tuple[float, object]:
    begin = time.process_time()
    made = work()
    return time.process_time() - begin, made


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
