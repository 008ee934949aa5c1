"""`harness augment` and what runs on it: folders with maps, drawn sets, drops by dimension."""

import asyncio
import json
import shutil
from pathlib import Path

import msgspec
import pytest

from harness_cli.augmentation import states
from harness_cli.augmentation.renaming import Renaming
from harness_cli.commands._augmenting import draw, held_against
from harness_cli.commands._dropping import show_drops, with_drops
from harness_cli.errors import BadFile, Interrupted, Locked, Stale, UsageError
from harness_cli.evaluation.augmenting import (
    Drawing,
    golds_of,
    grounds_of,
    read_lines,
    write_states,
)
from harness_cli.evaluation.drops import ALL, drops, drops_of
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import findings, load_evalset
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.rescore import rescore
from harness_cli.evaluation.under_map import map_beside
from harness_cli.evaluation.variant_set import draw_rows, states_text
from harness_cli.evaluation.writing_paraphrases import FILE, write_book
from harness_cli.harness.check_project import check_project
from harness_cli.harness.load import folder_files, harness_files, load_folder, load_state
from harness_cli.loop import dimension_drops
from harness_cli.loop.dimension_drops import conditions, make_sets, measured, set_of, table
from harness_cli.loop.scaffold import make_project
from harness_cli.records.augmentation import AugmentationMap, Dimension, Paraphrase, Recipe
from harness_cli.records.reader import dump_yaml, read_yaml
from harness_cli.simulator.solutions import read_oracle
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo

NAMES = Recipe(
    dimensions={
        "tool_definitions": Dimension(strength=1.0, moves=("rename", "parameters")),
        "skill_identifiers": Dimension(strength=1.0, moves=("rename",)),
    }
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Project.find(make_project(tmp_path_factory.mktemp("augmented") / "shop").root)


@pytest.fixture(scope="module")
def items(shop):
    every = load_evalset(shop, "live_stream_qa", split="dev").items
    return [i for i in every if i.expect.tools and i.expect.facts][:4]


def drawing(project, recipe=NAMES, items=()):
    oracle = read_oracle(project.evalsets)
    base = load_state(project)
    grounds = grounds_of(oracle)
    golds = asyncio.run(golds_of(oracle, base, items, grounds))
    return Drawing(harness_files(project), base, recipe, golds, grounds)


@pytest.fixture(scope="module")
def drawn(shop, items):
    out = shop.root / "augmented"
    made = asyncio.run(write_states(drawing(shop, items=items), out, count=2, seed=3))
    return out, made


def test_a_state_is_a_harness_that_check_finds_nothing_wrong_with(shop, drawn):
    out, made = drawn
    assert [line.state for line in made.lines] == ["hsa-0001", "hsa-0002"]
    for line in made.lines:
        assert load_folder(out / line.state).id == line.tree
        assert check_project(shop.root, rev=str(out / line.state)) == check_project(shop.root)
        assert line.edits["tool_definitions"].tokens > 0
    assert (out / "hsa-0001" / "judges" / "final" / "prompts" / "pipeline.yaml").is_file()


def test_a_stopped_command_goes_on_and_draws_nothing_twice(shop, drawn, items):
    out, made = drawn
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    (out / ".hsa-0003.part").mkdir()
    again = asyncio.run(write_states(drawing(shop, items=items), out, count=2, seed=3))
    assert (again.kept, len(again.lines)) == (2, 2)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()} == before
    (out / "hsa-0002.yaml").unlink()
    third = asyncio.run(write_states(drawing(shop, items=items), out, count=2, seed=3))
    assert third.kept == 1
    assert [line.tree for line in third.lines] == [line.tree for line in made.lines]
    with pytest.raises(Stale, match="of another base, recipe or seed"):
        asyncio.run(write_states(drawing(shop, items=items), out, count=2, seed=4))


def test_a_torn_last_line_of_the_log_is_passed_over(drawn, tmp_path):
    out, _ = drawn
    text = (out / "drawn.jsonl").read_bytes()
    (tmp_path / "drawn.jsonl").write_bytes(text[:-30])
    assert len(list(read_lines(tmp_path / "drawn.jsonl"))) == text.count(b"\n") - 1


def test_a_line_behind_a_torn_one_is_not_lost(shop, tmp_path):
    out = tmp_path / "torn"
    asyncio.run(write_states(drawing(shop), out, count=1, seed=3))
    with (out / "drawn.jsonl").open("ab") as log:
        log.write(b'{"state":"hsa-00')
    made = asyncio.run(write_states(drawing(shop), out, count=2, seed=3))
    assert list(read_lines(out / "drawn.jsonl")) == made.lines


def ask(shop, out, **words):
    usual = {"recipe": None, "count": 1, "seed": 0, "harness": None, "evalset": None,
             "split": "dev", "probe": 1, "each": False, "said": None}  # fmt: skip
    return asyncio.run(draw(shop, out, **usual | words))


def test_two_commands_never_write_states_into_one_folder(shop, tmp_path):
    with (
        locked(tmp_path / ".lock", what="harness augment"),
        pytest.raises(Locked, match="harness augment") as refused,
    ):
        ask(shop, tmp_path, probe=0)
    assert "another folder" in str(refused.value.hint)
    assert refused.value.exit_code == 12
    assert not (tmp_path / "drawn.jsonl").exists()


@pytest.mark.parametrize(
    ("recipe", "words", "said", "hint"),
    [
        ("", {"split": "test"}, "is sealed, and no state needs its items", "--split dev"),
        ("keep: [item-qaa]", {}, "`keep` names no skill of the harness", "`item-qa`"),
        ("dimensions: {hook_variants: {moves: [mask]}}", {}, "has no move `mask`", "known: "),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_a_folder_is_made(
    shop, tmp_path, recipe, words, said, hint
):
    path = tmp_path / "r.yaml"
    path.write_text(recipe or "schema: 1")
    with pytest.raises((UsageError, BadFile), match=said) as refused:
        ask(shop, tmp_path / "refused", recipe=path, **words)
    assert hint in str(refused.value.hint)
    assert not (tmp_path / "refused").exists()


def test_an_evalset_runs_in_an_augmented_folder_with_expectations_mapped(shop, drawn, items):
    out, _ = drawn
    folder = out / "hsa-0001"
    given = read_yaml(out / "hsa-0001.yaml", AugmentationMap)
    ids = tuple(i.id for i in items)
    asked = EvalOptions(
        evalset="live_stream_qa", split="dev", only=ids, policy="builtin", harness=str(folder)
    )
    run = asyncio.run(evaluate(shop, asked)).run
    config = run.config()
    assert config.augmentation == given
    assert config.harness_id == load_folder(folder).id
    assert config.dirty
    kept = Repo.open(shop.harness).files(config.harness_ref, Path())
    assert kept.keys() >= {"prompts/pipeline.yaml"}
    results = {r.item_id: r for r in run.results()}
    called = {t for r in results.values() for t in r.tools_called}
    assert called
    assert called <= {t.name for t in load_folder(folder).all_tools()}
    assert any(r.scores["tc"] == 1 for r in results.values())
    plain = EvalOptions(evalset="live_stream_qa", split="dev", only=ids, policy="builtin")
    base = {r.item_id: r for r in asyncio.run(evaluate(shop, plain)).run.results()}
    renaming = Renaming(given)
    for item, result in results.items():
        if tuple(renaming.tool(t) for t in base[item].tools_called) == result.tools_called:
            assert result.scores == base[item].scores
    scored = rescore(shop, run, reason=None, command=())
    again = {r.item_id: r.scores for r in scored.run.results()}
    assert again == {i: r.scores for i, r in results.items()}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tools": {"get_faq": "nowhere"}}, "the tool `get_faq` `nowhere`"),
        ({"skills": {"greet": "nowhere"}}, "the skill `greet` `nowhere`"),
        ({"hooks": {"loop-stop": "nowhere"}}, "the hook `loop-stop` `nowhere`"),
        ({"parameters": {"get_faq": {"query": "no"}}}, "`query` of the tool `get_faq` `no`"),
        ({"parameters": {"nothing": {"query": "no"}}}, "`query` of the tool `nothing` `no`"),
    ],
)
def test_the_map_of_another_harness_is_refused(shop, drawn, items, tmp_path, change, said):
    out, _ = drawn
    target = tmp_path / "hsa-0001"
    shutil.copytree(out / "hsa-0001", target)
    given = read_yaml(out / "hsa-0001.yaml", AugmentationMap)
    other = msgspec.structs.replace(
        given, **{kind: getattr(given, kind) | names for kind, names in change.items()}
    )
    target.with_name("hsa-0001.yaml").write_text(dump_yaml(other))
    asked = EvalOptions(
        evalset="live_stream_qa", split="dev", only=(items[0].id,), harness=str(target)
    )
    with pytest.raises(BadFile, match="of that name") as refused:
        asyncio.run(evaluate(shop, asked))
    assert said in str(refused.value)


def test_how_many_gold_solutions_states_were_held_against_is_said(shop, tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(dump_yaml(NAMES))
    made, _, _ = ask(shop, tmp_path / "none", probe=0, recipe=recipe)
    assert held_against(made) == "held against the base alone: no item was probed"
    made, _, _ = ask(shop, tmp_path / "some", probe=2)
    assert "gold solutions: 2 of 2 items probed have one" in held_against(made)
    # The oracle speaks the base's names: under another base none of its solutions is right.
    other = str(tmp_path / "none" / "hsa-0001")
    made, _, _ = ask(shop, tmp_path / "other", probe=2, harness=other)
    assert "base alone: 0 of 2 items probed" in held_against(made)


def test_a_stop_is_heard_between_two_states_and_says_what_goes_on(shop, tmp_path):
    def stop(done, of):
        asyncio.current_task().cancel()

    with pytest.raises(Interrupted, match="before all of 4 states") as stopped:
        ask(shop, tmp_path, count=4, probe=0, said=stop)
    assert "same command goes on" in stopped.value.hint
    assert stopped.value.exit_code == 130
    assert [p.name for p in tmp_path.glob("*.yaml")] == ["hsa-0001.yaml"]
    made, _, _ = ask(shop, tmp_path, count=4, probe=0)
    assert (made.kept, len(made.lines)) == (1, 4)


def test_a_map_of_another_schema_is_refused(drawn, tmp_path):
    out, _ = drawn
    text = (out / "hsa-0001.yaml").read_text()
    (tmp_path / "hsa-0001.yaml").write_text(text.replace("schema: 1", "schema: 9", 1))
    with pytest.raises(BadFile, match="schema 9 is not known"):
        map_beside(tmp_path / "hsa-0001")


def test_draws_of_a_state_that_was_given_up_are_counted(shop, tmp_path, monkeypatch):
    def broken(draft, draw, dimension):
        pipeline = draft.text("prompts/pipeline.yaml").replace("value: 300", "value: 900")
        return draft.written({"prompts/pipeline.yaml": pipeline}).counted(numbers=1)

    monkeypatch.setitem(states.ORDER, "system_prompt", broken)
    recipe = Recipe(dimensions={"system_prompt": Dimension(strength=1.0)}, attempts=3)
    made = asyncio.run(write_states(drawing(shop, recipe), tmp_path / "o", count=2, seed=1))
    assert (made.lines, list(made.failed)) == ([], ["hsa-0001", "hsa-0002"])
    assert made.discard_rate == 1.0
    assert made.reasons() == {"check": 6}
    assert "lies outside 160" in made.discards[0]


def test_an_item_that_needs_a_masked_skill_is_refused(shop, drawn, items):
    out, _ = drawn
    target = shop.root / "masked" / "hsa-0001"
    shutil.copytree(out / "hsa-0001", target)
    given = read_yaml(out / "hsa-0001.yaml", AugmentationMap)
    masked = msgspec.structs.replace(given, masked_skills=items[0].expect.skills[:1])
    target.with_name("hsa-0001.yaml").write_text(dump_yaml(masked))
    asked = EvalOptions(
        evalset="live_stream_qa", split="dev", only=(items[0].id,), harness=str(target)
    )
    with pytest.raises(UsageError, match="does not have"):
        asyncio.run(evaluate(shop, asked))


def with_set(project, items, recipe=NAMES, name="drawn"):
    """An evalset of these items, each under a state of its own."""
    base = project.evalsets / f"{name}-base"
    base.mkdir()
    lines = b"".join(msgspec.json.encode(i) + b"\n" for i in items)
    (base / "items.jsonl").write_bytes(lines)
    (base / "evalset.yaml").write_text(f"name: {base.name}\nsplits: {{dev: {len(items)}}}\n")
    folder = project.evalsets / name
    folder.mkdir()
    (folder / "evalset.yaml").write_text(
        f"name: {name}\nsplits: {{dev: {len(items)}}}\nitems_of: {base.name}\nstates: states.json\n"
    )
    state = load_state(project)
    oracle = read_oracle(project.evalsets)
    rows, tally = asyncio.run(
        draw_rows(harness_files(project), state, recipe, items, oracle, seed=5)
    )
    assert tally.without_gold == 0
    (folder / "states.json").write_bytes(states_text(state.id, recipe, rows))
    return rows


def test_a_drawn_set_makes_each_state_when_its_item_comes(shop, items, capsys):
    rows = with_set(shop, items)
    assert findings(shop, "drawn") == []
    evalset = load_evalset(shop, "drawn")
    assert evalset.ref.n == len(items)
    for item, row in zip(evalset.items, rows, strict=True):
        assert (item.id, item.state) == (row.item, row.state)
        assert evalset.states.state(item.state).id == row.tree
    run = asyncio.run(evaluate(shop, EvalOptions(evalset="drawn", policy="builtin"))).run
    trees = {t.item_id: t.harness_id for t in run.trajectories()}
    assert trees == {row.item: row.tree for row in rows}
    assert drops_of(shop, run) == (None, [])
    show_drops(shop, run)
    assert "harness eval drawn-base --split dev --policy builtin" in capsys.readouterr().err
    base = asyncio.run(evaluate(shop, EvalOptions(evalset="drawn-base", policy="builtin"))).run
    found, made = drops_of(shop, run)
    assert found.id == base.id
    whole = [d for d in made if d.dimension == ALL]
    assert {d.metric for d in whole} == {"avg", "accuracy", "effectiveness"}
    assert all(d.n == len(items) for d in whole)
    with_names = next(
        d for d in made if d.dimension == "tool_definitions" and d.applied and d.metric == "avg"
    )
    assert with_names.n == len(items)
    show_drops(shop, run)
    assert "with tool_definitions" in capsys.readouterr().out
    told = with_drops(shop, run.report(), run)
    assert told["drops"] == {"base": base.id, "rows": made}
    assert with_drops(shop, base.report(), base) == base.report()


def test_a_row_that_does_not_come_to_its_tree_is_said(shop, items):
    rows = with_set(shop, items[:1], name="stale")
    path = shop.evalsets / "stale" / "states.json"
    path.write_text(path.read_text().replace(rows[0].tree, "0" * 40))
    with pytest.raises(BadFile, match="its row says `000000000000`"):
        list(load_evalset(shop, "stale").items)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["states"].append(d["states"][0]), "stands twice"),
        (lambda d: d.update(schema=2), "schema 2 is not known"),
        (lambda d: d["states"].clear(), "has no state"),
        (lambda d: d["states"][0].update(item="nobody"), "has no state"),
    ],
)
def test_states_that_cannot_be_meant_are_refused(tmp_path, change, said):
    project = Project.find(make_project(tmp_path / "shop").root)
    folder = project.evalsets / "harness_variant_qa"
    data = json.loads((folder / "states.json").read_text())
    change(data)
    (folder / "states.json").write_text(json.dumps(data))
    with pytest.raises(BadFile, match=said):
        load_evalset(project, "harness_variant_qa", reason="a look")


def test_on_another_base_the_states_are_drawn_anew(tmp_path, items):
    project = Project.find(make_project(tmp_path / "shop").root)
    rows = with_set(project, items[:2])
    with (project.harness / "fallback.md").open("a") as file:
        file.write("One more line.\n")
    evalset = load_evalset(project, "drawn")
    for item, row in zip(evalset.items, rows, strict=True):
        made = evalset.states.state(item.state)
        assert made.id != row.tree
        assert made.fallback.endswith("One more line.")
        assert item.expect.tools
    pinned = load_evalset(project, "drawn", harness="HEAD")
    assert [pinned.states.state(i.state).id for i in pinned.items] == [r.tree for r in rows]


def test_the_shipped_variant_set_is_what_its_recipe_and_seeds_come_to(shop):
    evalset = load_evalset(shop, "harness_variant_qa", reason="reproducing its states")
    rows = evalset.states.drawn.states
    assert len(rows) == len({row.item for row in rows}) == 978
    assert len({row.tree for row in rows}) > 970
    if load_state(shop).id != evalset.states.drawn.base:
        pytest.fail("the base harness changed: python -m harness_cli.evaluation.variant_set")
    wanted = {row.item: row for row in rows[::140]}
    seen = 0
    for item in evalset.items.among(wanted):
        row = wanted[item.id]
        assert evalset.states.state(item.state).id == row.tree
        assert evalset.states.made(item.state).map.dimensions == row.dimensions
        seen += 1
    assert seen == len(wanted)
    share = sum("tool_definitions" in row.dimensions for row in rows) / len(rows)
    assert 0.65 < share < 0.85


def test_drops_are_paired_and_told_by_dimension():
    before = {f"i{n}": {"avg": 1.0} for n in range(8)}
    after = {f"i{n}": {"avg": 0.5 if n < 4 else 1.0} for n in range(9)}
    dimensions = {f"i{n}": ("skill_content",) if n < 4 else () for n in range(8)}
    made = {(d.dimension, d.applied): d for d in drops(before, after, dimensions)
            if d.metric == "avg"}  # fmt: skip
    assert (made[ALL, True].drop, made[ALL, True].n) == (0.25, 8)
    assert (made["skill_content", True].drop, made["skill_content", True].n) == (0.5, 4)
    assert made["skill_content", False].drop == 0.0
    assert made["hook_variants", True].n == 0
    assert made["hook_variants", True].drop is None


def test_the_table_of_drops_has_a_row_for_each_condition(shop, items):
    recipes = {k: v for k, v in conditions(1.0).items() if k in ("tool_definitions", ALL)}
    make_sets(shop, items[:2], recipes, 1)
    assert len(load_evalset(shop, set_of("tool_definitions")).items) == 2
    made = drops({"a": {"avg": 1.0}, "b": {"avg": 1.0}}, {"a": {"avg": 0.5}, "b": {"avg": 1.0}}, {})
    text = table({("builtin", "harness"): {"all": made}})
    assert "| builtin | harness | all | 2 | 100.0 → 75.0, +25.0 [" in text


def test_drops_stop_at_their_time_and_the_same_command_goes_on(tmp_path, monkeypatch, capsys):
    """One condition of two items: no time, then time, then nothing left to do."""
    only = {"tool_definitions": conditions(1.0)["tool_definitions"]}
    monkeypatch.setattr(dimension_drops, "conditions", lambda strength: only)
    monkeypatch.setattr(dimension_drops, "LEAST_S", 1e-9)
    asked = ["--limit", "2", "--agent", "harness", "--folder", str(tmp_path / "kept")]
    assert dimension_drops.main([*asked, "--seconds", "1e-9"]) == 0
    assert "| builtin | harness | tool_definitions | 0 |" in capsys.readouterr().out
    assert dimension_drops.main(asked) == 0
    table = capsys.readouterr().out
    assert "| builtin | harness | tool_definitions | 2 |" in table
    runs = sorted((tmp_path / "kept/.harness/runs").iterdir())
    assert len(runs) == 2
    assert dimension_drops.main(asked) == 0
    assert capsys.readouterr().out == table
    assert sorted((tmp_path / "kept/.harness/runs").iterdir()) == runs
    assert dimension_drops.main(["--limit", "3", *asked[2:]]) == 1
    assert "was begun for" in capsys.readouterr().err


@pytest.mark.accept
@pytest.mark.timeout(1800)
def test_no_dimension_costs_builtin_much(shop):
    """It reads what the prompt says: what an oracle does under a state, it is no worse at."""
    every = list(load_evalset(shop, "live_stream_qa", split="dev").items)
    recipes = {k: v for k, v in conditions(1.0).items() if k != ALL}
    make_sets(shop, every[::20], recipes, 9)
    for name, made in measured(shop, recipes, policy="builtin", agent="harness").items():
        drop = next(d for d in made if d.metric == "avg")
        assert drop.n == len(every[::20])
        assert drop.drop < 0.15, (name, drop)


def scripted(project, name, text):
    settings = (project.root / "harness.yaml").read_text()
    (project.root / f"{name}.yaml").write_text(
        dump_yaml({"schema": 1, "replies": [{"text": text}], "repeat": True})
    )
    entry = f"  {name}: {{kind: scripted, script: {name}.yaml}}\n"
    (project.root / "harness.yaml").write_text(
        settings.replace("policies:\n", f"policies:\n{entry}", 1)
    )
    return Project.find(project.root)


def test_paraphrases_are_asked_of_a_policy_once_and_judged_by_another(tmp_path):
    project = Project.find(make_project(tmp_path / "shop").root)
    project = scripted(project, "writer", "Do it with care and in your own way.")
    project = scripted(project, "checker", "different")
    files = folder_files(project.harness)
    asked = Recipe(paraphrase=Paraphrase(policy="writer", judge="checker"))
    book = asyncio.run(write_book(project, asked, files, tmp_path / "out"))
    assert book.texts == {}
    assert book.counts["asked"] > 250
    assert book.counts["refused: judge"] > 5
    assert book.counts["refused: negations"] > 50
    again = asyncio.run(write_book(project, asked, files, tmp_path / "out"))
    assert again.counts == book.counts
    other = Recipe(paraphrase=Paraphrase(policy="writer"))
    with pytest.raises(BadFile, match="by another policy"):
        asyncio.run(write_book(project, other, files, tmp_path / "out"))
    same = Recipe(paraphrase=Paraphrase(policy="writer", judge="writer"))
    with pytest.raises(UsageError, match="judge its own paraphrases"):
        asyncio.run(write_book(project, same, files, tmp_path / "other"))
    assert (tmp_path / "out" / FILE).is_file()
