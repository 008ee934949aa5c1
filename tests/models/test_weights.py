import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors import numpy as theirs

from harness_cli.errors import BadFile
from harness_cli.models.weights import as_bfloat16, as_floats, digest_of, read_header, read_weights
from harness_cli.models.weights_write import made, write_safetensors
from tests.models.tiny_head import head, policy, save

FLOATS = arrays.arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32))


def test_the_safetensors_library_reads_what_is_written_here(tmp_path):
    path = tmp_path / "a.safetensors"
    some = np.arange(12, dtype=np.float32).reshape(3, 4)
    write_safetensors(path, {"b": made(some, "F32"), "a": made(some[0], "F16")}, {"k": "v"})
    read = theirs.load_file(path)
    assert np.array_equal(read["b"], some)
    assert read["a"].dtype == np.float16
    assert read_header(path)[1] == {"format": "pt", "k": "v"}


def test_what_the_safetensors_library_writes_is_read_here(tmp_path):
    path = tmp_path / "a.safetensors"
    some = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    theirs.save_file({"x": some, "n": np.arange(4)}, path, {"made": "there"})
    tensors, metadata = read_header(path)
    assert np.array_equal(tensors["x"].values(), some)
    assert metadata == {"made": "there"}
    assert tensors["n"].dtype == "I64"
    with pytest.raises(BadFile, match="cannot be read as plain numbers"):
        tensors["n"].values()


@given(FLOATS)
def test_bf16_is_the_nearest_to_even(some):
    back = as_floats(as_bfloat16(some), "BF16")
    again = as_floats(as_bfloat16(back), "BF16")
    assert np.array_equal(back, again, equal_nan=True)
    assert np.array_equal(np.isnan(back), np.isnan(some))
    kept = np.isfinite(back) & np.isfinite(some)
    assert np.all(np.abs(back[kept] - some[kept]) <= np.abs(some[kept]) * 2**-8 + 1e-40)


def test_a_digest_knows_values_not_files(tmp_path):
    whole = {**policy(), **head()}
    one = read_weights(save(tmp_path / "one", whole))
    three = read_weights(save(tmp_path / "three", whole, shards=3))
    other = read_weights(save(tmp_path / "other", {**policy(1), **head()}))
    assert digest_of(one.tensors) == digest_of(three.tensors) == digest_of(whole)
    assert digest_of(one.tensors) != digest_of(other.tensors)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda b: b[:7], "cut off"),
        (lambda b: b[:-1], "does not fit its bytes"),
        (lambda b: (1 << 40).to_bytes(8, "little") + b[8:], "cut off"),
        (lambda b: b[:8] + b"x" + b[9:], "no JSON"),
        (lambda b: b.replace(b'"shape":[4]', b'"shape":[5]'), "does not fit its bytes"),
        (lambda b: b.replace(b'"shape":[4]', b'"shope":[4]'), "no dtype, shape"),
        (lambda b: b"[]".join([(2).to_bytes(8, "little"), b""]), "no JSON object"),
    ],
    ids=["short", "cut", "long header", "garbage", "shape", "no shape", "a list"],
)
def test_a_broken_file_is_named(tmp_path, spoil, says):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"x": made(np.ones(4, np.float32))})
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(BadFile, match=says):
        read_header(path)


@pytest.mark.parametrize("name", ["../up.safetensors", "gone.safetensors"])
def test_an_index_that_names_a_file_elsewhere_is_refused(tmp_path, name):
    save(tmp_path / "a", policy(), shards=2)
    (tmp_path / "up.safetensors").write_bytes(b"")
    index = tmp_path / "a" / "model.safetensors.index.json"
    told = json.loads(index.read_text())
    told["weight_map"]["x"] = name
    index.write_text(json.dumps(told))
    with pytest.raises(BadFile, match="not there"):
        read_weights(tmp_path / "a")
