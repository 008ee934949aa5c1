"""Rows of a supervised job: a data set of ours or a bare file, and what may not be in either."""

import asyncio
import json

import msgspec
import pytest
from lesson_shop import GREETED, item, make_lesson_shop
from tiny_checkpoint import make_tokenizer

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import load_header
from harness_cli.records.training import DataCard, SftJob
from harness_cli.training.leaks import refuse_leaking_texts, refuse_leaks, words_of
from harness_cli.training.masking import Tools
from harness_cli.training.sft import write_sft
from harness_cli.training.teaching import teach
from harness_cli.training.tokens import IGNORED, Tokenizer
from harness_cli.training.training_rows import ReadRow, TrainingRows, read_rows

NO_MARKS = (
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ loop.revindex }}\n{{ m.content }}"
    "{% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments | tojson }}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% endif %}"
)
"""No generation marks, and every turn is rendered otherwise once more follows."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    project = make_lesson_shop(tmp_path_factory.mktemp("rows") / "shop")
    make_tokenizer(project.root / "model")
    job = SftJob(evalset="shop", states=0, keep_retries=0.0, template="model")
    taught = asyncio.run(teach(project, job, project.root / "data"))
    write_sft(project, taught, job, project.root / "data")
    return project


def tools(project, folder="model"):
    return Tools(project.root / folder, project.root / folder)


def read(project, *data, students=("agent",), given=None, max_tokens=100_000):
    return read_rows(
        project.root,
        data,
        students,
        given or tools(project),
        max_tokens=max_tokens,
        vocabulary=10_000,
    )


def test_rows_of_tokens_are_taken_as_they_are_where_template_and_tokenizer_are_the_jobs(shop):
    found = read(shop, "data", students=("agent", "tool"))
    lines = [
        json.loads(line)
        for name in ("agent", "tool")
        for line in (shop.root / f"data/{name}.tokens.jsonl").read_text().splitlines()
    ]
    assert [list(r.input_ids) for r in found.rows] == [line["input_ids"] for line in lines]
    assert [list(r.labels) for r in found.rows] == [line["labels"] for line in lines]
    assert found.files.keys() == {"data/agent.tokens.jsonl", "data/tool.tokens.jsonl"}
    assert found.bare == []
    assert found.trained == sum(x != IGNORED for line in lines for x in line["labels"])


def test_under_another_tokenizer_the_messages_are_masked_anew(shop):
    """Retokenisation: rows of one tokenizer never go into a model of another."""
    words = (shop.root / "data/agent.jsonl").read_text().splitlines()
    make_tokenizer(shop.root / "bpe", texts=words * 3, vocab=400)
    other = tools(shop, "bpe")
    found = read(shop, "data", given=other, students=("agent", "response"))
    assert found.files.keys() == {"data/agent.jsonl", "data/response.jsonl"}
    mine = Tokenizer.read(shop.root / "bpe")
    plain = Tokenizer.read(shop.root / "model")
    before = read(shop, "data", students=("agent", "response"))

    def said(row, tokenizer):
        return tokenizer.decode([t for t in row.labels if t != IGNORED])

    assert [said(r, mine) for r in found.rows] == [said(r, plain) for r in before.rows]
    assert len(found.rows[0].input_ids) < len(before.rows[0].input_ids)


def test_a_template_without_reliable_masks_is_refused_with_the_rows(shop):
    make_tokenizer(shop.root / "unmarked", template=NO_MARKS)
    with pytest.raises(BadFile, match=r"of \d+ rows have no reliable mask") as caught:
        read(shop, "data", given=tools(shop, "unmarked"))
    assert "training template" in caught.value.hint


def test_a_file_that_was_changed_is_not_the_one_of_the_card(shop, tmp_path):
    path = shop.root / "data/agent.tokens.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + before.splitlines(keepends=True)[0])
    try:
        with pytest.raises(BadFile, match=r"data/agent.tokens.jsonl.*was changed"):
            read(shop, "data")
    finally:
        path.write_bytes(before)


def test_kept_retries_need_rows_of_tokens(shop):
    job = SftJob(evalset="shop", states=0, keep_retries=1.0, template="model")
    folder = shop.root / "kept"
    write_sft(shop, asyncio.run(teach(shop, job, folder)), job, folder)
    assert read(shop, "kept").rows
    make_tokenizer(shop.root / "other", texts=["hello " * 50], vocab=300)
    with pytest.raises(UsageError, match=r"hold outputs that hooks refused"):
        read(shop, "kept", given=tools(shop, "other"))


def test_a_student_that_a_data_set_has_no_rows_for_is_refused(shop, tmp_path):
    job = SftJob(evalset="shop", states=0, students=("tool",), template="model")
    folder = shop.root / "tool-only"
    write_sft(shop, asyncio.run(teach(shop, job, folder)), job, folder)
    with pytest.raises(UsageError, match="no rows for the student `response`"):
        read(shop, "tool-only", students=("response",))


@pytest.mark.parametrize(
    ("name", "words"),
    [("evalsets", "no data set: it has no manifest"), ("nothing", "no training data `nothing`")],
)
def test_what_is_no_data_is_refused(shop, name, words):
    with pytest.raises(BadFile, match=words):
        read(shop, name)


def rows_with(project, *texts, cards=()):
    tokenizer = Tokenizer.read(project.root / "model")
    made = [
        ReadRow(id=f"r-{n}", input_ids=tuple(tokenizer.encode(text)), labels=(1,))
        for n, text in enumerate(texts)
    ]
    return TrainingRows(rows=made, cards=list(cards), bare=[] if cards else made)


SEALED = "hello test, where does this train go"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A shop whose sealed item has words of its own; one dev item is the same in disguise."""
    project = make_lesson_shop(tmp_path_factory.mktemp("leaks") / "shop")
    make_tokenizer(project.root / "model")
    path = project.root / "evalsets/shop/items.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [r for r in rows if r["id"] != "test-1"]
    rows.append(item("test-1", SEALED, GREETED, split="test"))
    rows.append(item("twin-1", f"  {SEALED.upper()} ", GREETED))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    header = project.root / "evalsets/shop/evalset.yaml"
    header.write_text("name: shop\nsplits: {dev: 11, test: 1}\nseal: {splits: [test]}\n")
    return project


def test_an_item_of_a_sealed_split_in_a_bare_file_is_found_by_its_words(measured):
    clean = rows_with(measured, "<|im_start|>user\nv: good evening<|im_end|>")
    refuse_leaks(measured, clean, tools(measured))
    leaking = rows_with(measured, "nothing", f"<|im_start|>user\nv:  {SEALED}!<|im_end|>")
    with pytest.raises(UsageError, match=r"r-1 holds shop/test-1") as caught:
        refuse_leaks(measured, leaking, tools(measured))
    assert SEALED not in str(caught.value)


def test_an_item_that_measures_is_found_in_a_data_set_under_another_id(measured):
    card = DataCard(kind="sft", evalset="shop", split="dev", evalset_digest="")
    rows = rows_with(measured, "x", "y", cards=[card])
    for name, words in (("hello-1", None), ("twin-1", r"shop/twin-1 is shop/test-1")):
        named = [msgspec.structs.replace(rows.rows[0], id=f"{name}@original#0/agent")]
        found = TrainingRows(rows=named, cards=[card])
        if words is None:
            refuse_leaks(measured, found, tools(measured))
            continue
        with pytest.raises(UsageError, match=words):
            refuse_leaks(measured, found, tools(measured))


@pytest.mark.parametrize(("evalset", "item"), [("elsewhere", "twin-1"), ("shop", "unheard-of")])
def test_rows_of_items_that_the_project_does_not_have_are_searched_for_words(
    measured, evalset, item
):
    """A data set made in another project, or of items that are gone: nothing tells its items."""
    card = DataCard(kind="sft", evalset=evalset, split="dev", evalset_digest="")
    rows = rows_with(measured, f"<|im_start|>user\nv: {SEALED}<|im_end|>", cards=[card])
    named = [msgspec.structs.replace(rows.rows[0], id=f"{item}@original#0/agent")]
    with pytest.raises(UsageError, match="holds shop/test-1"):
        refuse_leaks(measured, TrainingRows(rows=named, cards=[card]), tools(measured))


def test_a_split_that_measures_and_is_not_there_is_refused_and_not_taken_for_none(measured):
    for named, message in (("shop:tset", "no split of `shop` named `tset`"), ("shpo", "shpo")):
        with pytest.raises(UsageError, match=message):
            refuse_leaking_texts(measured, [("p", "x")], [named])


def test_the_evalset_that_will_measure_the_checkpoint_is_named_by_the_job(measured):
    text = f"v: {'good evening'} and more"
    refuse_leaking_texts(measured, [("p-1", text)])
    with pytest.raises(UsageError, match=r"p-1 holds shop/hello-2"):
        refuse_leaking_texts(measured, [("p-1", text)], ["shop:dev"])


def test_greetings_are_alike_everywhere_and_say_nothing(measured):
    short = item("t", "hi", GREETED)["request"]
    from harness_cli.records.request import Request

    words = words_of(msgspec.convert(short, Request))
    assert words == ("hi",)
    refuse_leaking_texts(measured, [("p", "hi there")], ["shop"])


def test_looking_for_leaks_is_no_opening_of_a_seal(measured):
    refuse_leaking_texts(measured, [("p", "x")])
    assert not (measured.evalsets / "seal.log.jsonl").exists()
    assert load_header(measured, "shop").seal.splits == ("test",)
