"""`harness evalset synth`: builds, says what it threw away, writes over nothing."""

import json

import pytest
from program import call

from harness_cli.loop.scaffold import make_project


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("synth") / "shop").root


def synth(shop, *words):
    return call(shop, "evalset", "synth", "tool_robustness", "--as", "mine", *words)


def test_a_set_is_built_shown_and_not_written_over(shop):
    made = synth(shop, "--count", "6", "--seed", "3", "--json")
    assert made.code == 0, made.err
    told = json.loads(made.out)
    assert (told["schema"], told["splits"], told["new"]) == (1, {"test": 6}, True)
    path = shop / "evalsets/mine/items.jsonl"
    before = path.read_bytes()

    again = synth(shop, "--count", "6", "--seed", "3")
    assert again.code == 0
    assert f"6 items, {told['digests']['test']}, as it was" in again.out
    assert "drafts discarded" in again.out

    other = synth(shop, "--count", "6", "--seed", "4")
    assert other.code == 2
    assert "is there and holds other items" in other.err
    assert "--replace" in other.err
    assert path.read_bytes() == before

    replaced = synth(shop, "--count", "6", "--seed", "4", "--replace", "-q")
    assert replaced.code == 0
    assert replaced.out.strip() != told["digests"]["test"]
    assert path.read_bytes() != before
    assert call(shop, "evalset", "check", "mine").code == 0


def test_the_task_generator_of_the_roles_words_the_comments_unless_none_is_said(shop):
    settings = shop / "harness.yaml"
    before = settings.read_text()
    settings.write_text(before.replace("roles: {", "roles: {task_generator: nobody, "))
    try:
        assert "nobody" in synth(shop, "--count", "1").err
        by_template = synth(shop, "--count", "1", "--policy", "none", "--replace", "--json")
        assert json.loads(by_template.out)["filtered_by"] == []
    finally:
        settings.write_text(before)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "nobody"), "nobody"),
        (("--as", "../mine"), "cannot be the name of an evalset"),
        (("--as", "catalogue"), "cannot be the name of an evalset"),
    ],
)
def test_what_cannot_be_meant_is_refused(shop, words, said):
    done = call(shop, "evalset", "synth", "tool_robustness", "--count", "1", *words)
    assert done.code == 2
    assert said in done.err
