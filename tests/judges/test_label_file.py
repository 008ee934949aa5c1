"""Files of labels: CSV and JSON lines, several annotators, and refusals with their place."""

import json

import pytest

from harness_cli.errors import BadFile
from harness_cli.judges.label_file import read_label_file, with_items
from harness_cli.records.item import Item
from harness_cli.records.request import Comment, Request

HEAD = "item_id,annotator,accuracy,effectiveness,reply,kind,also,note\n"
ROWS = (
    'lsq-1,ann,1,1,"It\'s 89 yuan, link 1.",,,\n'
    'lsq-1,bo,1,0.5,"It\'s 89 yuan, link 1.",partial,,\n'
    'lsq-1,cy,0,0.5,"It\'s 89 yuan, link 1.",wrong_price,partial wrong_link,"said\ntwice"\n'
    "lsq-2,ann,1,0,,suppressed,,silence\n"
)


def written(folder, text, name="labels.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_of_csv_become_replies_with_their_annotators(tmp_path):
    found = read_label_file(written(tmp_path, HEAD + ROWS))
    first, second = found.replies
    assert (first.id, first.item_id, first.reply) == ("lsq-1", "lsq-1", "It's 89 yuan, link 1.")
    assert [(x.annotator, x.accuracy, x.effectiveness) for x in first.labels] == [
        ("ann", 1, 1.0),
        ("bo", 1, 0.5),
        ("cy", 0, 0.5),
    ]
    assert first.labels[2].kinds == ("wrong_price", "partial", "wrong_link")
    assert (second.reply, second.labels[0].kinds) == ("", ("suppressed",))
    assert found.without_reply == frozenset()
    assert found.places["lsq-2"].endswith("labels.csv:6")


@pytest.mark.parametrize("comma", [";", "\t"])
def test_a_spreadsheets_other_separators_and_its_byte_order_mark_are_read(tmp_path, comma):
    text = "\ufeff" + "item_id,accuracy,effectiveness,reply\nlsq-1,1,1,hello\n".replace(",", comma)
    found = read_label_file(written(tmp_path, text))
    assert (found.replies[0].reply, found.replies[0].labels[0].annotator) == ("hello", "team")


def test_json_lines_of_several_annotators_come_together(tmp_path):
    row = {"id": "r", "item_id": "lsq-1", "reply": "Hi.", "accuracy": 1, "effectiveness": 1}
    lines = [{**row, "annotator": name} for name in ("ann", "bo")]
    path = written(tmp_path, "".join(json.dumps(x) + "\n" for x in lines), "labels.jsonl")
    (reply,) = read_label_file(path).replies
    assert [x.annotator for x in reply.labels] == ["ann", "bo"]


def test_rows_without_a_reply_wait_for_a_run(tmp_path):
    text = "item_id,annotator,accuracy,effectiveness\nlsq-1,ann,1,1\n"
    assert read_label_file(written(tmp_path, text)).without_reply == {"lsq-1"}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("item_id,accuracy,effectiveness,mood\na,1,1,fine\n", "no column is named `mood`", 1),
        ("id,accuracy,effectiveness\na,1,1\n", "no column `item_id`", 1),
        (HEAD + "lsq-1,ann,yes,1,Hi,,,\n", "`accuracy` is `yes`, which is no number", 2),
        (HEAD + "lsq-1,ann,0.5,1,Hi,,,\n", "Expected `int`", 2),
        (HEAD + "lsq-1,ann,1,0.7,Hi,,,\n", "effectiveness 0, 0.5 or 1", 2),
        (HEAD + "lsq-1,ann,1,,Hi,,,\n", "`effectiveness` is empty", 2),
        (HEAD + "lsq-1,ann,1,1,Hi\n", "not 8 cells", 2),
        (HEAD + ROWS + 'lsq-1,bo,1,1,"It\'s 89 yuan, link 1.",,,\n', "labelled it twice", 7),
        (HEAD + ROWS + "lsq-1,dee,1,1,Another reply.,,,\n", "with two replies", 7),
        (HEAD, "no labelled reply", None),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(tmp_path, text, message, line):
    with pytest.raises(BadFile, match=message) as caught:
        read_label_file(written(tmp_path, text))
    if line is not None:
        assert f"labels.csv:{line}" in str(caught.value)


def test_labels_of_other_items_are_refused_with_place_and_fix(tmp_path):
    found = read_label_file(written(tmp_path, HEAD + ROWS))
    item = Item(id="lsq-1", request=Request(comments=(Comment(viewer="v", text="?"),)))
    with pytest.raises(BadFile) as caught:
        with_items(found.replies, [item], places=found.places, evalset="`live`, split dev")
    assert "labels.csv:6: item `lsq-2` is none of `live`, split dev" in str(caught.value)
    assert "--evalset and --split" in caught.value.hint
