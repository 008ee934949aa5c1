"""Roles of harness.yaml: a reward judge in the final panel is refused, the rest is told."""

import pytest

from harness_cli.harness.roles import role_problems, role_rows
from harness_cli.records.config import CheckpointRef, JudgeConfig, PolicyConfig, ProjectConfig

SHA = "ab" * 32


def served(model, url="https://api.example.com/v1", **more):
    return PolicyConfig(kind="openai", model=model, base_url=url, **more)


POLICIES = {
    "host": served("host-35b"),
    "pro": served("pro"),
    "glm": served("glm"),
    "qwen": served("qwen"),
    "flash": served("flash"),
    "flash-again": served("flash", "https://API.example.com:443/v1/"),
    "flash-elsewhere": served("flash", "https://other.example.com/v1"),
    "weights": served("x", "http://127.0.0.1:30000/v1",
                      checkpoint=CheckpointRef(uri="a", sha256=SHA)),
    "same-weights": served("y", "http://127.0.0.1:30001/v1",
                           checkpoint=CheckpointRef(uri="b", sha256=SHA.upper())),
}  # fmt: skip
FINAL = ("pro", "glm", "qwen")


def config(final=FINAL, reward=("flash",), **roles):
    judges = {"final": JudgeConfig(panel=final), "reward": JudgeConfig(panel=reward)}
    return ProjectConfig(
        policy="host",
        policies=POLICIES,
        judges={**judges, "grounded": JudgeConfig(kind="grounded")},
        roles={"final_judge": "final", "reward_judge": "reward", **roles},
    )


def problems(*args, **kwargs):
    return [(level, message) for _, level, message, _ in role_problems(config(*args, **kwargs))]


def test_roles_that_are_apart_raise_nothing():
    apart = {"rejection_judge": "weights", "user_simulator": "same-weights"}
    assert problems(**apart, task_generator="flash-elsewhere") == []


@pytest.mark.parametrize(
    ("final", "reward", "words"),
    [
        (("pro", "flash", "glm"), ("flash",), "share `flash`"),
        (("pro", "flash-again", "glm"), ("flash",), "`flash` and `flash-again`: openai flash"),
        (("pro", "weights", "glm"), ("same-weights",), "`same-weights` and `weights`"),
        (("grounded", "pro", "glm"), ("grounded", "flash"), "share `grounded`"),
    ],
    ids=["by name", "by model and address", "by checkpoint", "the grounded judge"],
)
def test_a_reward_judge_that_sits_in_the_final_panel_is_refused(final, reward, words):
    found = problems(final, reward)
    assert [level for level, _ in found] == ["error"]
    assert words in found[0][1]


def test_a_role_may_name_a_policy_in_place_of_a_judge():
    assert problems(reward_judge="glm")[0][0] == "error"
    assert problems(reward_judge="flash-elsewhere") == []


def test_a_teacher_that_votes_is_told_with_its_share_of_the_votes():
    level, message = problems(teacher="pro")[0]
    assert level == "warning"
    assert "has one of 3 votes" in message
    assert "decides alone" in problems(("pro",), teacher="pro")[0][1]


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"user_simulator": "host"}, "plays its own users"),
        ({"task_generator": "host"}, "writes its own tasks"),
        ({"user_simulator": "pro", "task_generator": "pro"}, "bias feeds itself"),
        ({"rejection_judge": "pro"}, "voice of the final score"),
        ({"rejection_judge": "flash"}, "follow one taste"),
        ({"rejection_judge": "weights", "teacher": "weights"}, "its own candidates"),
        ({"teachr": "pro"}, "nothing asks for a role `teachr`"),
    ],
)  # fmt: skip
def test_what_should_not_be_one_is_a_warning(roles, words):
    found = problems(**roles)
    assert {level for level, _ in found} == {"warning"}
    assert any(words in message for _, message in found)


def test_a_policy_that_votes_on_its_own_replies_is_told():
    assert "votes on its own replies" in problems(("host", "pro", "glm"))[0][1]


def test_the_table_names_who_plays_each_role_in_the_order_of_the_report():
    rows = role_rows(config(teacher="pro"))
    assert [row.role for row in rows] == ["teacher", "reward_judge", "final_judge"]
    assert rows[2].plays == ("pro: openai pro", "glm: openai glm", "qwen: openai qwen")


def test_the_judge_of_a_run_has_a_row_where_it_is_not_the_final_one():
    settings = config(("pro", "glm"))
    rows = role_rows(settings, "grounded")
    assert (rows[-1].role, rows[-1].name) == ("judge", "grounded")
    assert rows[-1].plays == ("grounded: deterministic checks against the catalogue, no model",)
    final = settings.roles["final_judge"]
    assert role_rows(settings, final) == role_rows(settings) == role_rows(settings, "none")


def test_an_embedded_policy_that_votes_is_called_so():
    policies = {"builtin": PolicyConfig(kind="builtin"), "local": PolicyConfig(kind="local")}
    judges = {"final": JudgeConfig(panel=("builtin", "local"))}
    rows = role_rows(ProjectConfig(policies=policies, judges=judges), "final")
    assert rows[0].plays == (
        "builtin: builtin (embedded, no language model)",
        "local: local (embedded, a small language model)",
    )
