"""One wheel and one environment for every test that needs the program installed."""

import pytest
from installed import build_wheel, install


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def elsewhere(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel and nothing of this checkout."""
    return install(wheel, tmp_path_factory.mktemp("elsewhere") / "env")
