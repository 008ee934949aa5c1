"""The wheel, built from a copy of the tracked files and installed in an environment elsewhere.

The environment finds the dependencies in this one through a `.pth` file, so that nothing is
downloaded; the wheel itself is installed by pip.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ("PATH", "LANG", "HOME", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "XDG_STATE_HOME")
GIT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")


def sources(target: Path) -> Path:
    """The files git knows or would add, copied: no stale `build/` can leak into a wheel."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    return target


def build_wheel(folder: Path) -> Path:
    """`pip wheel --no-deps .` with the build tools of this environment."""
    source = sources(folder / "source")
    names = sorted(p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file())
    (folder / "sources.txt").write_text("\n".join(names))
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(folder / "dist"), str(source))
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """An environment with the wheel alone; the dependencies are those of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    # Only a path: `.pth` files inside it (the editable install of this checkout) are not read.
    site_packages(folder).joinpath("dependencies.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )
    return python


def site_packages(folder: Path) -> Path:
    """Where packages of an environment lie."""
    return Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))


def pip(*args: str) -> None:
    """One pip command, quiet and offline."""
    quiet = ("--quiet", "--disable-pip-version-check")
    done = subprocess.run(
        [sys.executable, "-m", "pip", *quiet, *args], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def environment(**more: str) -> dict[str, str]:
    """A user's environment: nothing of this checkout in it."""
    return {**{k: os.environ[k] for k in (*KEPT, *GIT) if k in os.environ}, **more}


def harness(python: Path, folder: Path, *args: str, **more: str) -> subprocess.CompletedProcess:
    """The console script of an environment."""
    return subprocess.run(
        [str(python.with_name("harness")), *args],
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
