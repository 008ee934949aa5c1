"""The words around the numbers: who ran, who judged, what is not as one would expect."""

from harness_cli.evaluation.page.rows import Spooled
from harness_cli.evaluation.page.subject import UNFINISHED, Subject

Words = tuple[str, str]
"""A text in English and Chinese."""


def panel(subject: Subject) -> list[tuple[Words, str]]:
    """What was run, by identity: a row a thing. Digests are whole, so that they can be compared."""
    config = subject.config
    split = f" / {config.evalset.split}" if config.evalset.split else ""
    limited = f", first {config.limit}" if config.limit is not None else ""
    repeats = f", {config.repeat} repeats" if config.repeat > 1 else ""
    rows: list[tuple[Words, str]] = [
        (("Run", "运行"), f"{config.id} ({subject.status})"),
        (("Started", "开始"), config.started or "unknown"),
        (
            ("Evalset", "评测集"),
            f"{config.evalset.name}{split}, n {config.evalset.n}{limited}{repeats}",
        ),
        (("Evalset digest", "评测集摘要"), config.evalset.digest),
        (("Catalogue digest", "商品目录摘要"), config.evalset.catalogue_digest or "none"),
        (("Policy", "策略模型"), _policy(subject)),
        (
            ("Agent", "智能体"),
            f"{config.agent}, pipeline {config.pipeline}, profile {config.profile}",
        ),
        (("Harness tree", "Harness 树"), config.harness_id),
        (("Harness commit", "Harness 提交"), _commit(subject)),
        (("Judge", "裁判"), config.judge_id),
        (("Seed", "随机种子"), str(config.seed)),
        (("Versions", "版本"), ", ".join(f"{k} {v}" for k, v in sorted(config.versions.items()))),
    ]
    why = f" ({subject.why_incumbent})" if subject.why_incumbent else ""
    named = subject.incumbent.id if subject.incumbent else "none"
    rows.append((("Incumbent", "在任版本"), named + why))
    return [row for row in rows if row[1]]


def remarks(subject: Subject, spooled: Spooled) -> list[Words]:
    """What a reader must know before the numbers are believed."""
    config, report, found = subject.config, subject.report, []
    done = report.planned - report.counts.get("missing", 0)
    so_far = f"{done} of {report.planned}", f"{report.planned} 项中的 {done} 项"
    if subject.status == "running":
        found.append(
            (
                f"Partial: the run is still being written; {so_far[0]} rollouts are in.",
                f"部分结果：运行仍在写入，已完成{so_far[1]}。",
            )
        )
    elif subject.status != "complete":
        found.append(
            (
                f"Partial: the run is {subject.status}; {so_far[0]} rollouts are in.",
                f"部分结果：运行状态为 {subject.status}，已完成{so_far[1]}。",
            )
        )
    if config.dirty:
        found.append(
            (
                "The harness had uncommitted changes when this was run.",
                "运行时 Harness 含有未提交的修改。",
            )
        )
    if not config.fresh:
        found.append(
            (
                "Answers were replayed or given, not asked afresh: nothing here is timed.",
                "答案来自重放或给定文件，并非实时请求：不计时。",
            )
        )
    found += _made_otherwise(subject)
    if subject.status not in UNFINISHED:
        found += _unscored(subject)
    if spooled.left_out:
        found.append(
            (
                f"{spooled.left_out} trajectories had no room in this page, passed items first; "
                f"`harness show trajectory ITEM --run {config.id}` shows them.",
                f"有 {spooled.left_out} 条轨迹因页面大小限制未收录（优先略去通过项）。",
            )
        )
    if spooled.cut:
        found.append(
            (
                f"{spooled.cut} long texts are shortened; each says how much is missing.",
                f"有 {spooled.cut} 段长文本被截短，并注明了省略的字数。",
            )
        )
    return found


def _made_otherwise(subject: Subject) -> list[Words]:
    """What sets a run apart from one that asked every item of its set afresh, here."""
    config, found = subject.config, []
    if config.imported is not None:
        kind, file = config.imported.kind, config.imported.file
        found.append(
            (
                f"Imported from {file} ({kind}): another tool made these rollouts.",
                f"由 {file}（{kind}）导入：轨迹由其他工具产生。",
            )
        )
    if config.rejudged is not None:
        was = config.rejudged
        found.append(
            (
                f"Rollouts of run {config.rescored_of}, judged anew; its judge was {was}.",
                f"运行 {config.rescored_of} 的轨迹由新裁判重新评判，原裁判为 {was}。",
            )
        )
    elif config.rescored_of is not None:
        found.append(
            (
                f"Scored again from run {config.rescored_of}: its rollouts and its verdicts.",
                f"对运行 {config.rescored_of} 重新计分：沿用其轨迹与裁决。",
            )
        )
    if config.only:
        found.append(
            (
                f"Restricted to {len(config.only)} named items.",
                f"仅限 {len(config.only)} 个指定条目。",
            )
        )
    if config.judge_dirty:
        found.append(
            (
                "The judge's own harness was not committed.",
                "裁判自身的 Harness 未提交。",
            )
        )
    return found


def _unscored(subject: Subject) -> list[Words]:
    counts = subject.report.counts
    lost = counts.get("unscored", 0) + counts.get("errored", 0)
    if not lost:
        return []
    return [
        (
            f"{lost} of {subject.report.planned} rollouts have no score; they are in no mean.",
            f"{subject.report.planned} 项中有 {lost} 项没有得分，不计入均值。",
        )
    ]


def _policy(subject: Subject) -> str:
    config = subject.config
    model = config.policy_settings.get("model")
    parts = [config.policy_id, f"model {model}" if model else ""]
    parts.append(f"fallback {config.fallback_id}" if config.fallback_id else "")
    return ", ".join(p for p in parts if p)


def _commit(subject: Subject) -> str:
    config = subject.config
    dirty = f" + uncommitted files ({config.harness_ref})" if config.dirty else ""
    return (config.harness_commit or "none") + dirty
