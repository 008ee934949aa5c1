import pytest

from harness_cli.records.reader import load_strings, load_yaml


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "Y", "n", "12:30", "0o17", "010"])
def test_a_word_stays_a_word_as_key_and_as_value(word):
    assert load_yaml(f"{word}: {word}", name="f") == {word: word}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("12", 12),
        ("-3", -3),
        ("0x1f", 31),
        ("0", 0),
        ("1.5", 1.5),
    ],
)
def test_truth_values_and_numbers_of_yaml_1_2_stay_what_they_are(text, value):
    assert load_yaml(f"a: {text}", name="f") == {"a": value}


def test_where_a_format_knows_only_text_every_scalar_is_text():
    text = "{a: 1.0, b: true, c: ~, d: [2026-01-01]}"
    assert load_strings(text, name="f") == {"a": "1.0", "b": "true", "c": "~", "d": ["2026-01-01"]}
