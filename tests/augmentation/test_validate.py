"""Broken transformations are caught, each by the part of the validator that it is for."""

from dataclasses import replace

import msgspec
import pytest
from hsa import FULL, files, only

from harness_cli.augmentation import states
from harness_cli.augmentation.draft import Draft
from harness_cli.augmentation.paraphrases import Book
from harness_cli.augmentation.states import augment
from harness_cli.augmentation.validate import examined
from harness_cli.records.augmentation import AugmentationMap, Paraphrase, Recipe


def start() -> Draft:
    return states._start(files(), Recipe(), 0, "s", (), Book())


def drafted(recipe: Recipe, seed: int = 5) -> Draft:
    made = augment(files(), recipe, seed)
    return replace(start(), files=made.files, map=made.map)


def edited(draft: Draft, path: str, old: str, new: str) -> Draft:
    text = draft.text(path)
    assert old in text, (path, old)
    return draft.written({path: text.replace(old, new, 1)})


def kinds(draft: Draft) -> set[str]:
    _, faults = examined(start(), draft)
    return {fault.kind for fault in faults}


def test_the_base_itself_and_what_is_drawn_from_it_have_no_faults():
    assert kinds(start()) == set()
    for seed in (1, 2):
        assert kinds(drafted(FULL, seed)) == set()


def test_a_tool_renamed_in_one_place_only_is_caught():
    draft = drafted(only("tool_definitions", "rename"))
    new = draft.map.tools["get_inventory"]
    for path, old in (
        ("skills/item-qa/SKILL.md", f"`{new}`"),
        ("hooks/price-needs-lookup.yaml", new),
        ("skills/tool-strategy-multi/SKILL.md", f"{new}("),
    ):
        broken = edited(draft, path, old, old.replace(new, "get_inventory"))
        assert "names" in kinds(broken), path


def test_a_tool_renamed_without_its_executor_is_caught():
    draft = drafted(only("tool_definitions", "rename"))
    path = f"tools/{draft.map.tools['get_faq']}.yaml"
    broken = edited(draft, path, "harness.operation: get_faq", "harness.operation: get_faqs")
    assert kinds(broken) == {"tools"}


def test_a_parameter_renamed_without_its_executor_is_caught():
    draft = drafted(only("tool_definitions", "parameters"))
    name = draft.map.parameters["get_faq"]["query"]
    broken = edited(draft, "tools/get_faq.yaml", f"{name}: query", f"{name}: question")
    assert kinds(broken) == {"tools"}


def test_a_skill_renamed_in_one_place_only_is_caught():
    draft = drafted(only("skill_identifiers", "rename"))
    new, greet = draft.map.skills["item-qa"], draft.map.skills["greet"]
    path = f"skills/{draft.map.skills['aftersale']}/SKILL.md"
    assert "names" in kinds(edited(draft, path, new, "item-qa"))
    path = f"skills/{draft.map.skills['thanks']}/SKILL.md"
    assert "names" in kinds(edited(draft, path, f": {greet}.", ": greet."))


def test_a_dropped_essential_rule_is_caught_and_a_dropped_other_rule_is_not():
    rule = "- When the policy does not cover it, say so and name customer service. Do not invent a "
    path = "skills/aftersale/SKILL.md"
    assert kinds(edited(start(), path, f"{rule}number of days.\n", "")) == {"skills"}
    other = "- Do not blame the viewer, the courier or the warehouse.\n"
    assert kinds(edited(start(), path, other, "")) == set()


@pytest.mark.parametrize(
    ("path", "old", "new", "kind"),
    [
        ("skills/aftersale/SKILL.md", "Do not promise a refund", "Promise a refund", "skills"),
        ("skills/aftersale/SKILL.md", "- Never decide", "- Do as you like.\n- Never decide",
         "skills"),
        ("skills/item-qa/SKILL.md", "is {price} yuan right now", "costs {price}", "skills"),
        ("skills/greet/SKILL.md", "## Reply patterns", "## Something else", "skills"),
        ("prompts/pipeline.yaml", "value: 300", "value: 900", "check"),
        ("prompts/pipeline.yaml", "range: [160, 420]", "range: [160, 520]", "prompts"),
        ("prompts/pipeline.yaml", "  - {name: boundaries}\n", "", "prompts"),
        ("prompts/blocks/boundaries.md", "- No judgement of other shops, brands, platforms, stars "
         "or politics.\n", "", "prompts"),
        ("prompts/blocks/boundaries.md", "No medical", "Medical", "prompts"),
        ("hooks/price-needs-lookup.yaml", "get_inventory, ", "", "hooks"),
        ("hooks/repeat-call.yaml", "limit: 2", "limit: 3", "hooks"),
        ("hooks/reply-length.yaml", "max_retries: 1", "max_retries: 0", "hooks"),
        ("hooks/reply-length.yaml", "{reason}. ", "", "hooks"),
        ("tools/get_faq.yaml", "maxLength: 200", "maxLength: 20", "tools"),
        ("tools/get_faq.yaml", "required: [query]", "required: [query, link_id]", "tools"),
    ],
)  # fmt: skip
def test_what_says_something_else_than_the_base_is_caught(path, old, new, kind):
    found = kinds(edited(start(), path, old, new))
    assert kind in found


def test_a_skill_or_tool_that_is_gone_is_caught():
    assert "skills" in kinds(start().written({"skills/thanks/SKILL.md": None}))
    assert "check" in kinds(start().written({"tools/get_faq.yaml": None}))
    assert "hooks" in kinds(start().written({"hooks/loop-stop.yaml": None}))


def test_a_file_that_does_not_load_is_one_fault_with_its_place():
    broken = start().written({"hooks/loop-stop.yaml": "name: [loop"})
    _, faults = examined(start(), broken)
    assert [f.kind for f in faults] == ["check"]
    assert "hooks/loop-stop.yaml" in faults[0].what


def test_a_map_that_is_not_one_to_one_is_caught():
    given = AugmentationMap(state="s", hooks={"a": "x", "b": "x"})
    assert "map" in kinds(replace(start(), map=given))


def test_what_a_skill_says_of_a_masked_one_is_caught():
    masked = msgspec.structs.replace(start().map, masked_skills=("greet",))
    broken = start().written({"skills/greet/SKILL.md": None})
    _, faults = examined(start(), replace(broken, map=masked))
    assert {f.kind for f in faults} >= {"names"}
    assert any("skills/thanks/SKILL.md speaks of `greet`" in f.what for f in faults)


def test_a_tool_that_stands_for_no_servers_tool_is_caught():
    draft = drafted(only("tool_definitions", "rename"))
    path = f"tools/{draft.map.tools['calculate_promotion']}.yaml"
    old = "harness.operation: calculate_promotion"
    broken = edited(draft, path, old, "harness.operation: calculate_promotions")
    _, faults = examined(start(), broken)
    assert "did you mean `calculate_promotion`?" in str(faults[0]) or "stands for" in str(faults[0])


@pytest.mark.parametrize("place", ["from the FAQ entries below", "from the entries of the FAQ"])
def test_a_wording_of_a_line_that_speaks_of_a_place_says_what_the_line_says(place):
    """Reordered blocks have no "below": such lines are compared without it, wordings as well."""
    block = files()["prompts/blocks/boundaries.md"].data.decode()
    (line,) = [" ".join(e.split()) for e in block.split("\n- ") if "FAQ entries below" in e]
    other = f"Only tool results, or what is {place}, tell you facts. Do not say what is not there."
    told = Paraphrase(share=1.0, wordings={line: (other,)})
    recipe = msgspec.structs.replace(only("system_prompt"), paraphrase=told, attempts=1)
    for seed in range(3):
        made = augment(files(), recipe, seed)
        said = " ".join(made.files["prompts/blocks/boundaries.md"].data.decode().split())
        assert other.split(",")[0] in said
    begun = states._start(files(), recipe, 0, "s", (), Book())
    draft = replace(begun, files=made.files, map=made.map)
    broken = edited(draft, "prompts/blocks/boundaries.md", "there.", "here.")
    assert [f.kind for f in examined(begun, broken)[1]] == ["prompts"]
