"""Canonical JSON and whole files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.records.canonical import canonical_json, digest, write_atomic, write_json

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_canonical_json_is_a_fixed_point(value):
    once = canonical_json(value)
    assert canonical_json(json.loads(once)) == once


@given(st.dictionaries(st.text(), values, max_size=6))
def test_the_order_of_keys_does_not_matter(value):
    assert digest(value) == digest(dict(reversed(value.items())))


def test_whole_numbers_have_one_form_and_nan_none():
    assert canonical_json({"b": 89.0, "a": [1.5, True]}) == b'{"a":[1.5,true],"b":89}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path):
    write_json(tmp_path / "a" / "x.json", {"é": 1})
    write_json(tmp_path / "a" / "x.json", {"é": 2})
    assert json.loads((tmp_path / "a" / "x.json").read_text()) == {"é": 2}
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["x.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    write_atomic(path, b"old")
    with pytest.raises(TypeError):
        write_atomic(path, "no bytes")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


KILLED = """
import os, sys
from pathlib import Path
from harness_cli.records import canonical
path = Path(sys.argv[1])
os.fsync = lambda fd: os.kill(os.getpid(), 9)
canonical.write_atomic(path, b"new" * 100000)
"""


def test_kill_9_in_the_middle_of_a_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    write_atomic(path, b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert done.returncode == -9
    assert path.read_bytes() == b"old"


def test_a_written_file_can_be_read_by_others(tmp_path):
    write_atomic(tmp_path / "x", b"1")
    assert Path(tmp_path / "x").stat().st_mode & 0o777 == 0o644
