"""In CI a skip that is not on `allowed_skips.txt` is a failure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = """\
import pytest

def test_works():
    pass

@pytest.mark.skip(reason={reason!r})
def test_is_left_out():
    pass
"""


@pytest.mark.parametrize(
    ("reason", "ci", "code"),
    [
        ("no time today", "true", 1),
        ("no time today", "", 0),
        ("an allowed reason: in full", "true", 0),
    ],
)
def test_an_unknown_skip_fails_in_ci_alone(tmp_path, reason, ci, code):
    shutil.copy(HERE / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "allowed_skips.txt").write_text("# reasons\nan allowed reason\n")
    (tmp_path / "test_it.py").write_text(TESTS.format(reason=reason))
    env = {k: v for k, v in os.environ.items() if k != "CI"} | ({"CI": ci} if ci else {})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert ("not on tests/allowed_skips.txt" in done.stdout) == ("allowed" not in reason)
