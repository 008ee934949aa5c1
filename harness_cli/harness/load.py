"""A harness state from any git revision or from the working files, checked, with its id."""

from collections.abc import Mapping
from pathlib import Path

from harness_cli.errors import RepoError, UnknownName
from harness_cli.harness.check import check_parts
from harness_cli.harness.findings import Finding, bad_file, errors
from harness_cli.harness.parts import Parts, collect, content, judges
from harness_cli.harness.revisions import named
from harness_cli.records.harness import HarnessState, Replies
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.tree import EXECUTABLE, FILE, Entry, tree_id


def load_state(project: Project, rev: str | None = None) -> HarnessState:
    """The harness at a revision, or the working files when there is none.

    A revision is a commit, tag or branch, `refs/harness/runs/<run>`, a harness id (a tree), or a
    folder that holds a harness.
    Nothing is checked out. Working files that differ from HEAD give a `dirty` state.
    Raises `BadFile` listing every error, `RepoError` when git knows no such revision.
    """
    repo = Repo.open(project.harness)
    if rev is None:
        return _working(repo, project.harness)
    if is_harness(Path(rev)):
        return load_folder(Path(rev))
    files, commit = files_at(repo, project.harness, rev)
    return state_from_files(files, commit=commit, object_format=repo.object_format)


def load_judge(project: Project, name: str, rev: str | None = None) -> HarnessState:
    """The harness of a judge, `judges/<name>/`, with its own tree id."""
    repo = Repo.open(project.harness)
    if rev is None:
        files, commit = repo.working_files(project.harness), repo.head()
    else:
        files, commit = files_at(repo, project.harness, rev)
    found = judges(files)
    if name not in found:
        raise UnknownName.of("judge in the harness", name, found)
    head = _head_files(repo, project.harness)
    return state_from_files(
        found[name],
        commit=commit,
        dirty=rev is None and judges(head).get(name) != found[name],
        object_format=repo.object_format,
        judge=True,
    )


def load_folder(folder: Path) -> HarnessState:
    """The harness that lies in a folder, in git or not; it counts as uncommitted."""
    return state_from_files(folder_files(folder), dirty=True)


def is_harness(folder: Path) -> bool:
    """Whether a folder holds a harness."""
    return (folder / "prompts" / "pipeline.yaml").is_file()


def placed(directory: Path, harness: str | None) -> str | None:
    """A revision as it is; a harness named by its folder, as if started in `directory`."""
    if harness is None or not is_harness(directory / harness):
        return harness
    return str((directory / harness).resolve())


def folder_files(folder: Path) -> dict[str, Entry]:
    """The files of a folder; a link is not followed out of it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            mode = EXECUTABLE if path.stat().st_mode & 0o100 else FILE
            found[path.relative_to(folder).as_posix()] = Entry(mode, path.read_bytes())
    return found


def harness_files(project: Project, where: str | None = None) -> dict[str, Entry]:
    """The files of the project's harness, at a revision or (None) as they are now, or of a folder
    that holds a harness."""
    if where is not None and is_harness(Path(where)):
        return folder_files(Path(where))
    repo = Repo.open(project.harness)
    if where is None:
        return repo.working_files(project.harness)
    return files_at(repo, project.harness, where)[0]


def files_at(repo: Repo, folder: Path, rev: str) -> tuple[dict[str, Entry], str | None]:
    """The harness files a revision holds, and its commit (None for a kept tree or a tree id).

    A revision is one of git's, or `evolve/latest` (see `revisions`).
    """
    rev = named(repo, rev)
    try:
        return repo.files(rev, folder), repo.ask(
            "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"
        )
    except RepoError:
        files = repo.files(rev, Path())
        if "prompts/pipeline.yaml" not in files:
            raise
        return files, None


def _working(repo: Repo, folder: Path) -> HarnessState:
    files = content(repo.working_files(folder))
    dirty = content(_head_files(repo, folder)) != files
    return state_from_files(
        files,
        commit=None if dirty else repo.head(),
        dirty=dirty,
        object_format=repo.object_format,
    )


def _head_files(repo: Repo, folder: Path) -> dict[str, Entry]:
    head = repo.head()
    if head is None:
        return {}
    try:
        return repo.files(head, folder)
    except RepoError:  # the folder is not committed yet
        return {}


def state_from_files(
    files: Mapping[str, Entry],
    *,
    commit: str | None = None,
    dirty: bool = False,
    object_format: str = "sha1",
    judge: bool = False,
) -> HarnessState:
    """The state that files make up; its id is their git tree id.

    `judges/` and `failure_classes/` are left out. Raises `BadFile` listing every error.
    """
    made, _ = loaded(files, commit=commit, dirty=dirty, object_format=object_format, judge=judge)
    return made


def loaded(
    files: Mapping[str, Entry],
    *,
    commit: str | None = None,
    dirty: bool = False,
    object_format: str = "sha1",
    judge: bool = False,
) -> tuple[HarnessState, list[Finding]]:
    """The same, and the findings that are no errors: one reading of the files for both."""
    kept = content(files)
    parts = collect(kept)
    found = [*parts.findings, *check_parts(parts, judge=judge)]
    wrong = errors(found)
    if wrong:
        raise bad_file(wrong)
    made = _state(parts, id=tree_id(kept, object_format=object_format), commit=commit, dirty=dirty)
    return made, found


def _state(parts: Parts, *, id: str, commit: str | None, dirty: bool) -> HarnessState:  # noqa: A002  the record's own word
    return HarnessState(
        id=id,
        commit=commit,
        dirty=dirty,
        skills=tuple(sorted(parts.skills.values(), key=lambda skill: skill.name)),
        tools=tuple(sorted(parts.tools.values(), key=lambda tool: tool.name)),
        mcp=parts.mcp.servers,
        lock=parts.lock,
        pipelines=parts.pipelines,
        blocks=parts.blocks,
        hooks=tuple(sorted(parts.hooks.values(), key=lambda hook: (hook.priority, hook.name))),
        fallback=parts.fallback,
        replies=parts.replies or Replies(conservative={}),
        files={path: entry.data for path, entry in parts.files.items()},
    )
