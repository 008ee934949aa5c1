"""`harness doctor` says whether judges could vote and who plays which role."""

from harness_cli.loop.doctor import judges, roles
from harness_cli.store.project import Project

CONFIG = """\
schema: 1
policy: host
policies:
  host: {kind: builtin}
  a: {kind: openai, base_url: "http://127.0.0.1:9/v1", model: a, api_key_env: NO_SUCH_KEY_HERE}
  b: {kind: openai, base_url: "http://127.0.0.1:9/v1", model: b}
judges:
  plain: {kind: grounded}
  final: {panel: [grounded, a, b]}
  poor: {panel: [a]}
roles: {final_judge: final, reward_judge: b, teacher: a}
"""


def examined(tmp_path, part):
    (tmp_path / "harness.yaml").write_text(CONFIG)
    return list(part(Project.read(tmp_path)))


def test_a_judge_can_vote_when_enough_of_its_members_could_answer(tmp_path):
    found = {f.name: (f.state, f.value) for f in examined(tmp_path, judges)}
    assert found == {
        "judge plain": ("ok", "grounded, no model"),
        "judge final": ("ok", "2 of 3 members could vote, 2 are needed"),
        "judge poor": ("optional", "0 of 1 members could vote, 1 are needed"),
    }


def test_the_role_table_is_shown_and_a_reward_judge_in_the_final_panel_is_missing_its_place(
    tmp_path,
):
    found = examined(tmp_path, roles)
    assert [f.name for f in found[:3]] == [
        "role teacher",
        "role reward_judge",
        "role final_judge",
    ]
    problems = [f for f in found if f.state != "ok"]
    assert [(f.name, f.state) for f in problems] == [
        ("roles.reward_judge", "missing"),
        ("roles.teacher", "optional"),
    ]
    assert "take it out of the panel" in problems[0].fix
