import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.store.redact import MASK, Redactor, redact, redact_value

PLAIN = Redactor()


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-Ab3dEfGh1jKlMnOpQrSt",
        "sk-abcdefghijklmnopqrstuvwx",
        "ghp_0123456789abcdefghij0123",
        "github_pat_11ABCDEFG0abcdefghijkl",
        "xoxb-123456789012-abcdef",
        "hf_AbCdEfGhIjKlMnOpQrStUv",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN",
    ],
)
def test_what_has_the_shape_of_a_key_is_masked_wherever_it_stands(secret):
    for text in (secret, f"x {secret} y", f'{{"k":"{secret}"}}', f"a={secret}&b=1", f"({secret})"):
        assert secret not in PLAIN.text(text)
        assert MASK in PLAIN.text(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Authorization: Bearer abc123def456ghi", f"Authorization: Bearer {MASK}"),
        ("http://user:pass@host/v1", f"http://{MASK}@host/v1"),
        ("api_key=0123456789abcdef", f"api_key={MASK}"),
        (r"{\"api_key\": \"0123456789abcdef\"}", rf"{{\"api_key\": \"{MASK}\"}}"),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it(text, said):
    assert PLAIN.text(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "The task-force-of-the-whole-company met.",
        "link 3 costs 89 yuan, basic facts, bearer of news",
        "item-qa load_skill get_product_info_by_link_id p-101",
        "risk_of_something_that_is_long",
        "keyword: umbrella",
        "https://example.com/path?item=3",
        "3号链接现在89元。",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert PLAIN.text(text) == text
    assert PLAIN.text(text * 40) == text * 40


def test_values_of_secret_variables_are_masked_and_short_or_plain_ones_are_not():
    environment = {"MY_API_KEY": "correct horse", "DB_PASSWORD": "1", "HOME": "/home/somebody"}
    made = Redactor.from_environment(environment, more=["extra-secret"])
    said = made.text("correct horse 1 /home/somebody extra-secret")
    assert said == f"{MASK} 1 /home/somebody {MASK}"


def test_this_process_environment_counts(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "plain words only")
    assert redact("x plain words only y") == f"x {MASK} y"
    assert redact_value({"a": ["plain words only", 3, None]}) == {"a": [MASK, 3, None]}


def test_a_header_field_is_masked_whatever_its_value():
    assert PLAIN.value({"Authorization": "short", "x": {"api_key": "k"}, "api_key": ""}) == {
        "Authorization": MASK,
        "x": {"api_key": MASK},
        "api_key": "",
    }


@given(st.text(max_size=40), st.text(max_size=40), st.text("abcdef0123456789", min_size=8))
def test_a_known_value_never_survives(before, after, secret):
    assert secret not in Redactor([secret]).text(before + secret + after).replace(MASK, "|")
