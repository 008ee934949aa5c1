"""Studies: the tiny base's documents, lessons by construction, arms as jobs, tables."""

import asyncio
import json
import shutil
from pathlib import Path
from random import Random

import msgspec
import pytest
from tokenizers import Tokenizer

from harness_cli.errors import HarnessError, UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.harness.load import load_folder
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.augmentation import AugmentationMap, Recipe
from harness_cli.records.canonical import digest
from harness_cli.records.reader import read_yaml
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.study import Arm, ArmScore, Study, StudyData, Table, TableRow
from harness_cli.records.training_job import OpdTraining, SftTraining
from harness_cli.store.project import Project
from harness_cli.training.study.bound import bind
from harness_cli.training.study.checked import check_chosen, check_study
from harness_cli.training.study.families import families, units
from harness_cli.training.study.golden import Setting, Shop, gold_script, lessons, played
from harness_cli.training.study.prepare import dealt
from harness_cli.training.study.run import job_of
from harness_cli.training.study.tables import make_tables, markdown
from harness_cli.training.template_source import tools_for
from harness_cli.training.tiny.documents import LEVELS, Writer, instruction_of
from harness_cli.training.tiny.pieces import Encoder
from harness_cli.training.tiny.tokenizer import make_tokenizer
from harness_cli.training.tiny.words import all_words

HERE = Path(__file__).parents[2] / "benchmarks" / "hat_tiny"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def study():
    return read_yaml(HERE / "STUDY.yaml", Study)


@pytest.fixture(scope="module")
def shop():
    project = Project.read(HERE / "project")
    loaded = load_evalset(project, "tiny_train", split="dev")
    base = load_folder(project.harness)
    return Shop(base, loaded.world, GroundedJudge()), list(loaded.items)


def augmented(base, recipe, seed):
    from harness_cli.augmentation.states import augment

    made = augment(base, recipe, seed, name=f"s{seed}")
    return Setting(f"s{seed}", made.state, made.map)


def test_every_word_is_one_token_with_and_without_a_blank(tokenizer):
    made = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    for word in all_words():
        assert len(made.encode(word).ids) == len(made.encode(f" {word}").ids) == 1
    assert len(made.encode("link 12").ids) == 4  # link, blank, one, two


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_the_same_generator_writes_the_same_documents(tokenizer, level):
    encoder = Encoder(Tokenizer.from_file(str(tokenizer / "tokenizer.json")))
    one, two = Writer(Random(level)), Writer(Random(level))
    for late in (False, True):
        for _ in range(20):
            kind, pieces = one.document(level, late=late)
            assert (kind, pieces) == two.document(level, late=late)
            ids, weights = encoder.row(pieces)
            assert len(ids) == len(weights)
            assert any(weights)


def test_an_answer_of_a_listing_is_the_name_of_the_entry_with_the_word():
    writer = Writer(Random(3))
    for _ in range(50):
        listing, *asked = writer.listing(1)
        lines = listing[0].removeprefix("\n- ").split("\n- ")
        entries = dict(line.rstrip('"').split(' -> "') for line in lines)
        for request, name, _ in zip(asked[::3], asked[1::3], asked[2::3], strict=True):
            word = request[0].strip().removesuffix(' -> "')
            assert entries[word] == name[0]


def test_instructions_are_followed_by_their_answers():
    draw = Random(1)
    seen = {instruction_of(draw, all_words())[0].split(" ")[0] for _ in range(200)}
    assert {"Repeat", "Repeat:", "Write", "first", "last", "Say"} <= seen


def test_gold_is_right_under_the_base_and_under_augmented_states(shop, study):
    ground, items = shop
    recipe = read_yaml(HERE / "project" / study.recipe, Recipe)
    settings = [
        Setting("original", ground.base, AugmentationMap(state="original")),
        augmented(ground.base, recipe, 3),
    ]
    for setting in settings:
        for item in items[:12]:
            made = asyncio.run(played(ground, item, setting))
            assert made is not None, (setting.name, item.id)
            assert next(c.name for c in made.calls) == setting.map.tools.get(
                "load_skill", "load_skill"
            )


def test_a_wrong_gold_is_no_lesson(shop):
    ground, items = shop
    asked = next(i for i in items if i.category == "price")
    fact = msgspec.structs.replace(asked.expect.facts[0], value=1, forms=())
    wrong = msgspec.structs.replace(
        asked, expect=msgspec.structs.replace(asked.expect, facts=(fact,))
    )
    setting = Setting("original", ground.base, AugmentationMap(state="original"))
    assert asyncio.run(played(ground, wrong, setting)) is None


def test_lessons_train_on_what_the_policy_says_alone(shop, tokenizer):
    ground, items = shop
    item = next(i for i in items if i.category == "returns")
    setting = Setting("original", ground.base, AugmentationMap(state="original"))
    tools = tools_for(HERE, str(tokenizer), str(tokenizer))

    async def rows():
        return [row async for row in lessons(ground, [(item, setting)], tools)]

    (row,) = asyncio.run(rows())
    made = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    said = made.decode([i for i in row.labels if i >= 0], skip_special_tokens=False)
    script = asyncio.run(gold_script(ground, item, setting))
    assert said.count("<|im_end|>") == len(script) == 3
    assert said.endswith(f"{script[-1].content}<|im_end|>")
    assert "# Skill" not in said
    assert '{"returns"' not in said


def test_requests_to_one_harness_are_one_row_that_reads_it_once(shop, tokenizer):
    ground, items = shop
    mine = [i for i in items if i.category == "returns"][:3]
    setting = Setting("original", ground.base, AugmentationMap(state="original"))
    tools = tools_for(HERE, str(tokenizer), str(tokenizer))

    async def rows(together):
        pairs = [(item, setting) for item in mine]
        return [row async for row in lessons(ground, pairs, tools, together=together)]

    alone, rest, last = asyncio.run(rows(1))
    two, odd = asyncio.run(rows(2))
    assert odd == last
    assert two.id == f"{alone.id}+{rest.id}"
    shown = len(alone.input_ids) + len(rest.input_ids) - len(two.input_ids)
    assert two.input_ids == alone.input_ids + rest.input_ids[shown:]
    assert two.labels == alone.labels + rest.labels[shown:]
    assert alone.input_ids[:shown] == rest.input_ids[:shown]
    assert all(label < 0 for label in rest.labels[:shown])
    made = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    read = made.decode(list(two.input_ids), skip_special_tokens=False)
    assert read.count("<|im_start|>system") == 1
    assert read.count("<|im_start|>user") >= 2


def test_items_are_dealt_the_original_first_and_then_different_states(shop):
    ground, items = shop
    settings = [
        Setting(name, ground.base, AugmentationMap(state=name)) for name in ("original", "a", "b")
    ]
    plain = dealt(items[:5], settings, StudyData(items=5), seed=1)
    assert [s.name for _, s in plain] == ["original"] * 5
    many = dealt(items[:5], settings, StudyData(items=5, states=2, each=3), seed=1)
    assert len(many) == 15
    for at in range(0, 15, 3):
        assert [s.name for _, s in many[at : at + 1]] == ["original"]
        assert {s.name for _, s in many[at + 1 : at + 3]} == {"a", "b"}


@pytest.mark.parametrize("size", ["hat_tiny", "hat_local"])
def test_every_arm_of_a_study_is_a_job_with_its_ancestor(size):
    study = read_yaml(HERE.parent / size / "STUDY.yaml", Study)
    names = {"base"}
    kinds = set()
    for arm in study.arms:
        assert arm.start in names, f"{arm.name} stands before its ancestor"
        assert arm.teacher in (None, *names)
        names.add(arm.name)
        job = job_of(study, arm, study.seeds[0], "models/base")
        kinds.add(type(job))
        assert job.name == f"{arm.name}-s{study.seeds[0]}"
        assert job.seed == study.seeds[0]
        assert job.base == ("models/base" if arm.start == "base" else f"{arm.start}-s{job.seed}")
    assert kinds == {SftTraining, OpdTraining, RlTraining}
    for table in study.tables:
        assert {r.arm for r in table.rows} <= names
        assert {c.plus for c in table.contrasts} | {c.minus for c in table.contrasts} <= names
    assert len(study.seeds) == {"hat_tiny": 3, "hat_local": 1}[size]


def test_rl_of_the_study_stays_within_its_thirty_steps(study):
    assert study.stages["rl"].job["steps"] <= 30


@pytest.mark.parametrize("size", ["hat_tiny", "hat_local"])
def test_the_studies_of_the_project_fit_together(size):
    check_study(read_yaml(HERE.parent / size / "STUDY.yaml", Study))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"schema": 2}, "schema 2 is not known"),
        ({"name": "../elsewhere"}, "`../elsewhere` cannot name"),
        ({"seeds": ()}, "numbers from 1 on"),
        ({"seeds": (0, 1)}, "numbers from 1 on"),
        ({"seeds": (3, 3)}, "seed `3` stands twice"),
        ({"arms": (Arm(name="a", start="b", stage="sft"),)}, "no arm before `a` named `b`"),
        ({"arms": (Arm(name="a", start="base", stage="tfs"),)}, "no stage named `tfs`"),
        ({"arms": (Arm(name="base", start="base", stage="sft"),)}, "arm `base` stands twice"),
        ({"tables": (Table(title="T", rows=(TableRow(label="x", arm="z"),)),)}, "no arm named `z`"),
        ({"tables": (Table(title="T", rows=(), columns=("K",)),)}, "no column named `K`"),
    ],
)
def test_a_study_whose_parts_do_not_fit_is_refused_before_anything_is_copied(study, more, message):
    given = msgspec.structs.replace(study, **({"tables": ()} | more))
    with pytest.raises(HarnessError, match=message):
        check_study(given)


def test_a_seed_or_an_arm_that_is_not_of_the_study_is_refused_and_not_run(study):
    check_chosen(study, study.seeds[0], ["sft"])
    with pytest.raises(UsageError, match="no seed named `9`"):
        check_chosen(study, 9, [])
    with pytest.raises(UsageError, match="no arm named `sfd`"):
        check_chosen(study, None, ["sfd"])


def test_an_unknown_field_of_a_stage_names_the_arm(study):
    arm = msgspec.structs.replace(study.arms[0], more={"speed": 3})
    with pytest.raises(UsageError, match=r"arm `sft`.*speed"):
        job_of(study, arm, 11, "models/base")
    with pytest.raises(UsageError, match="no stage `sleep`"):
        job_of(study, msgspec.structs.replace(study.arms[0], stage="sleep"), 11, "models/base")


def test_families_hold_what_an_arm_starts_from_and_who_teaches_it(study):
    *alone, sft, hsa = sorted(families(study.arms), key=len)
    assert alone == [("sft-100",), ("hsa-100",)]
    assert set(sft) == {"sft", "sft-opd", "sft-opd-rl", "sft-rl", "sft-hrl"}
    assert set(hsa) == {arm.name for arm in study.arms} - {*sft, "sft-100", "hsa-100"}
    a, b, c = (Arm(name=n, start="base", stage="sft") for n in "abc")
    assert families([a, b, c]) == [("a",), ("b",), ("c",)]
    taught = msgspec.structs.replace(c, teacher="a")
    assert families([a, b, taught]) == [("a", "c"), ("b",)]


def test_units_are_every_family_of_every_seed_the_largest_first(study):
    every = [msgspec.structs.replace(arm, on_request=False) for arm in study.arms]
    made = units(every, [5, 6])
    sizes = [(seed, len(names)) for seed, names in made]
    assert sizes == [(seed, n) for n in (8, 5, 1, 1) for seed in (5, 6)]
    assert units(study.arms, [5], ["sft", "hsa", "sft-rl"]) == [
        (5, ("sft", "sft-rl")),
        (5, ("hsa",)),
    ]
    asked = [name for _, names in units(study.arms, [5]) for name in names]
    assert sorted(asked) == sorted(arm.name for arm in study.arms if not arm.on_request)
    order = [arm.name for arm in study.arms]
    for _, names in made:
        assert [order.index(n) for n in names] == sorted(order.index(n) for n in names)


def test_a_study_that_says_something_else_does_not_go_on_in_the_same_folder(study, tmp_path):
    project = HERE / "project"
    bind(tmp_path, study, project)
    bind(tmp_path, msgspec.structs.replace(study, arms=study.arms[:3], tables=()), project)
    first = msgspec.structs.replace(study.arms[0], more={"data": ["train/other.jsonl"]})
    for change, named in (
        ({"arms": (first, *study.arms[1:])}, "`arm sft`"),
        ({"data": {**study.data, "hsa": StudyData(items=9)}}, "`data hsa`"),
        ({"sets": (msgspec.structs.replace(study.sets[0], evalset="x"),)}, "`column T1`"),
        ({"split": "dev"}, "`split`"),
    ):
        with pytest.raises(UsageError, match=named):
            bind(tmp_path, msgspec.structs.replace(study, **change), project)
    other = tmp_path / "project"
    shutil.copytree(project, other)
    (other / "harness.yaml").write_text((other / "harness.yaml").read_text() + "\n")
    with pytest.raises(UsageError, match="`project`"):
        bind(tmp_path, study, other)


def test_a_study_that_was_begun_before_a_field_came_goes_on(study, tmp_path):
    """`together` came after the tiny study's tables were made; these are its digests of then."""
    bind(tmp_path, study, HERE / "project")
    told = json.loads((tmp_path / "study.json").read_bytes())
    for name, fields in (
        ("data original", {"items": 300, "states": 0, "each": 1, "original": True}),
        ("data hsa", {"items": 300, "states": 30, "each": 4, "original": True}),
    ):
        assert told[name] == digest(fields)
    several = msgspec.structs.replace(study.data["hsa"], together=2)
    changed = msgspec.structs.replace(study, data={**study.data, "hsa": several})
    with pytest.raises(UsageError, match="`data hsa`"):
        bind(tmp_path, changed, HERE / "project")


def scored(arm, seed, scores):
    return ArmScore(arm=arm, seed=seed, column="T1", scores=scores)


def test_a_table_shows_means_paired_changes_and_every_seed(study):
    items = [f"i{n}" for n in range(20)]
    lines = [scored("base", 0, dict.fromkeys(items, 0.5))]
    lines += [scored("sft", s, dict.fromkeys(items, 0.5 + 0.1 * (s - 10))) for s in (11, 12, 13)]
    lines += [scored("sft-opd", 11, dict.fromkeys(items, 1.0))]
    table = make_tables(study, lines)[0]
    rows = {row.label: row.cells["T1"] for row in table.rows}
    assert rows["Base"].mean == pytest.approx(50)
    assert rows["+ SFT"].mean == pytest.approx(70)
    assert rows["+ SFT"].change == pytest.approx(20)
    assert rows["+ SFT"].seeds == pytest.approx({11: 60, 12: 70, 13: 80})
    alone = table.rows[2].cells["T1"]
    assert alone.single
    assert alone.change == pytest.approx(40)  # from seed 11 of SFT, not from the mean
    text = markdown(table)
    assert "| + SFT | 70.0 +20.0 [+20.0, +20.0] (60.0 70.0 80.0) |" in text
    assert "single run" in text
    assert "| Δ(HSA-SFT − SFT) | not run |" in text


def test_items_that_only_one_side_has_are_no_pair(study):
    lines = [scored("base", 0, {"a": 0.0, "b": 1.0}), scored("sft", 11, {"b": 1.0, "c": 0.0})]
    row = make_tables(study, lines)[0].rows[1].cells["T1"]
    assert row.change == 0.0
    assert row.mean == pytest.approx(50)
