"""A recipe as a person wrote it: what no recipe says is refused with its line and a fix."""

import pytest
from hsa import files, only

from harness_cli.augmentation.recipes import MOVES, read_recipe
from harness_cli.augmentation.states import augment
from harness_cli.errors import BadFile
from harness_cli.records.augmentation import DIMENSIONS


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("dimensions: {skill_contents: {}}", "r.yaml:2: .*'skill_contents'", "`skill_content`"),
        ("dimensions:\n  hook_variants: {moves: [renames]}", "r.yaml:3: .*`renames`", "`rename`"),
        ("dimensions: {skill_content: {moves: [numbers]}}", "has no move `numbers`", "known: para"),
        ("dimensions: {skill_content: {strength: 2}}", "r.yaml:2: .*<= 1.0", "in that range"),
        ("skip: -1", "r.yaml:2: .*>= 0.0 at `skip`", "in that range"),
        ("attempts: 0", "r.yaml:2: .*>= 1 at `attempts`", "in that range"),
        ("count: 0", "r.yaml:2: .*>= 1 at `count`", "in that range"),
        ("paraphrase: {policy: p, share: 7}", "r.yaml:2: .*`paraphrase.share`", "in that range"),
        ("strenght: 1", "r.yaml:2: .*`strenght`", "`strength`"),
    ],
)
def test_what_no_recipe_says_is_refused_with_its_line(tmp_path, text, words, hint):
    (tmp_path / "r.yaml").write_text(f"schema: 1\n{text}\n")
    with pytest.raises(BadFile, match=words) as refused:
        read_recipe(tmp_path / "r.yaml")
    assert hint in str(refused.value.hint)


def test_a_recipe_of_another_schema_is_refused(tmp_path):
    (tmp_path / "r.yaml").write_text("schema: 9\n")
    with pytest.raises(BadFile, match="schema 9 is not known"):
        read_recipe(tmp_path / "r.yaml")


def test_the_moves_that_a_recipe_may_name_are_those_that_dimensions_make():
    for name in DIMENSIONS:
        made = {move for seed in (0, 1) for c in augment(files(), only(name), seed).changes
                for move in c.moves}  # fmt: skip
        # Skills are masked only where it is known which are needed; a repair is rare.
        assert made <= set(MOVES[name])
        assert set(MOVES[name]) - made <= {"mask", "repair"}
