"""Who plays what: roles of harness.yaml, and which of them must not be one (TR App. E.1).

Pure: the settings alone decide. Two policies are one where they serve the same checkpoint, or the
same model at the same address; a name says nothing about weights.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from urllib.parse import urlsplit

from harness_cli.harness.findings import Level
from harness_cli.records.config import PolicyConfig, ProjectConfig
from harness_cli.records.run import RoleRow

ROLES = {
    "teacher": "writes the candidates that supervised training learns from",
    "rejection_judge": "filters the teacher's candidates",
    "reward_judge": "grades rollouts while a policy is trained",
    "final_judge": "grades what is reported and gated",
    "user_simulator": "plays viewers in simulated dialogues",
    "task_generator": "writes tasks and items",
    "proposer": "proposes edits of the harness",
}
"""Role → what who has it does. Human labels are the sixth voice and no entry."""
GRADED = "judge"
"""The row of the judge that graded a run and is not the final one."""
GROUNDED = "grounded"
EMBEDDED = {
    "builtin": "(embedded, no language model)",
    "local": "(embedded, a small language model)",
}
"""Kind of policy → what to call it where it plays a role: it is no API model."""
Row = tuple[str, Level, str, str]
"""(place, level, message, fix)."""


def role_rows(config: ProjectConfig, judge: str | None = None) -> tuple[RoleRow, ...]:
    """Every role that is given, in the order of `ROLES`, with what plays it.

    `judge` is the one that graded a run: where that is not the final judge it has a row of its own.
    """
    order = [*ROLES, *sorted(config.roles.keys() - ROLES.keys())]
    given = tuple(
        RoleRow(
            role=role,
            name=config.roles[role],
            plays=tuple(describe(name, config) for name in players(config, config.roles[role])),
        )
        for role in order
        if role in config.roles
    )
    plays = tuple(describe(name, config) for name in players(config, judge or ""))
    if judge is None or not plays or judge == config.roles.get("final_judge"):
        return given
    return (*given, RoleRow(role=GRADED, name=judge, plays=plays))


def role_problems(config: ProjectConfig) -> Iterator[Row]:
    """What must not be (error) and what is to be known (warning) about the roles given."""
    yield from _unknown(config)
    overlaps = (
        (
            "reward_judge", "final_judge", "error",
            "the score a policy is trained on would be the score it is reported by",
            "take it out of the panel, or reward with another model",
        ),
        (
            "rejection_judge", "final_judge", "warning",
            "candidates are chosen by a voice of the final score", "filter with another model",
        ),
        (
            "rejection_judge", "reward_judge", "warning",
            "what is learnt from and what is rewarded follow one taste",
            "filter with another model",
        ),
        (
            "rejection_judge", "teacher", "warning",
            "the teacher grades its own candidates", "filter with another model",
        ),
        (
            "user_simulator", "task_generator", "warning",
            "tasks and the users who pose them come from one model, whose bias feeds itself",
            "use a stronger, separate simulator",
        ),
    )  # fmt: skip
    for one, other, level, why, fix in overlaps:
        for names in shared(config, one, other):
            message = f"`{one}` and `{other}` share {names}: {why}"
            yield f"$.roles.{one}", "error" if level == "error" else "warning", message, fix
    yield from _teacher_votes(config)
    yield from _same_as_policy(config)


def shared(config: ProjectConfig, one: str, other: str) -> Iterator[str]:
    """The players that two roles have in common, each said in a few words."""
    first = players(config, config.roles.get(one, ""))
    second = players(config, config.roles.get(other, ""))
    for a in first:
        for b in second:
            if a == b:
                yield f"`{a}`"
            elif same_model(config.policies.get(a), config.policies.get(b)):
                yield f"one model (`{a}` and `{b}`: {describe(a, config).partition(': ')[2]})"


def players(config: ProjectConfig, name: str) -> tuple[str, ...]:
    """The policies behind a name: the members of a judge's panel, or the policy itself."""
    judge = config.judges.get(name)
    if judge is not None:
        return (GROUNDED,) if judge.kind == "grounded" else judge.panel
    return (name,) if name in config.policies or name == GROUNDED else ()


def same_model(one: PolicyConfig | None, other: PolicyConfig | None) -> bool:
    """Whether two policies answer with the same weights, as far as their settings show."""
    if one is None or other is None:
        return False
    return bool(_identities(one) & _identities(other))


def _identities(config: PolicyConfig) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    if config.checkpoint is not None:
        found.add(("uri", config.checkpoint.uri))
        if config.checkpoint.sha256:
            found.add(("sha256", config.checkpoint.sha256.lower()))
    if config.sha256:
        found.add(("sha256", config.sha256.lower()))
    if config.kind == "openai":
        found.add(("served", config.model, _address(config.base_url or "")))
    else:
        found.add((config.kind, config.model, config.script or ""))
    return found


def _address(url: str) -> str:
    """An endpoint without what makes no difference: case of the host, a last slash, a port."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    port = port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{(parts.hostname or '').lower()}:{port}{parts.path.rstrip('/')}"


def describe(name: str, config: ProjectConfig) -> str:
    """`name: kind model`, as far as the settings tell."""
    if name == GROUNDED:
        return "grounded: deterministic checks against the catalogue, no model"
    policy = config.policies.get(name)
    if policy is None:
        return f"{name}: unknown"
    words = [policy.kind, policy.model or policy.script or EMBEDDED.get(policy.kind, "")]
    if policy.checkpoint is not None:
        words.append(policy.checkpoint.uri)
    return f"{name}: {' '.join(w for w in words if w)}"


def _unknown(config: ProjectConfig) -> Iterator[Row]:
    for role in config.roles:
        if role not in ROLES:
            near = get_close_matches(role, ROLES, n=1)
            fix = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(ROLES)}"
            yield f"$.roles.{role}", "warning", f"nothing asks for a role `{role}`", fix


def _teacher_votes(config: ProjectConfig) -> Iterator[Row]:
    panel = players(config, config.roles.get("final_judge", ""))
    for names in shared(config, "teacher", "final_judge"):
        alone = "decides alone" if len(panel) < 3 else f"has one of {len(panel)} votes"
        message = f"the teacher votes in the final panel ({names}), where it {alone}"
        yield "$.roles.teacher", "warning", message, "a panel of three keeps it from deciding alone"


def _same_as_policy(config: ProjectConfig) -> Iterator[Row]:
    """Roles that the policy under test should not have itself."""
    why = {
        "user_simulator": "it plays its own users",
        "task_generator": "it writes its own tasks",
        "reward_judge": "it rewards itself",
        "final_judge": "it votes on its own replies",
    }
    tested = config.policies.get(config.policy)
    for role, words in why.items():
        for name in players(config, config.roles.get(role, "")):
            if name == config.policy or same_model(tested, config.policies.get(name)):
                message = f"`{role}` shares a model with the policy `{config.policy}`: {words}"
                yield f"$.roles.{role}", "warning", message, "use another model for one of them"
