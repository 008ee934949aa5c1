"""Review hunk by hunk at a terminal, with the keys of `git add -p`.

The terminal itself is given as functions, so that the same review runs on a real pseudo-terminal
in a test and under any front end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness_cli.errors import HarnessError
from harness_cli.evolution.failure import Failure
from harness_cli.evolution.modifying import modified, proposed_text
from harness_cli.evolution.ops import Files
from harness_cli.evolution.proposal_file import hunks, now
from harness_cli.evolution.review import decide, replace_op, split_hunk
from harness_cli.evolution.show_hunk import cases_of, diff_of, head_of, paint
from harness_cli.records.diagnosis import Case, Decision, Op, Proposal
from harness_cli.store.state import user_name

HELP = """\
y - accept this hunk
n - reject this hunk (a reason is asked for; it is remembered)
e - edit the file that results, in $EDITOR
s - split this hunk into its separate changes
c - show the failing cases behind it
a - accept this hunk and the rest of its edit
d - reject this hunk and the rest of its edit
q - quit; what is undecided stays undecided
? - this help"""


@dataclass(slots=True)
class Terminal:
    """How to speak with the reviewer."""

    say: Callable[[str], None]
    ask: Callable[[str], str]
    """A line of input; raises EOFError at the end of input."""
    edit: Callable[[str, str], str | None]
    """(text, file name) → the text as edited, None when the editor gave up."""
    keep: Callable[[Proposal, Proposal], Proposal] = lambda _, decided: decided
    """(as it was shown, as decided) → as it stands: another's where they were faster."""
    colour: bool = False
    reviewer: str = field(default_factory=user_name)


def review(
    proposal: Proposal,
    files: Files,
    terminal: Terminal,
    *,
    failures: Mapping[str, Failure] | None = None,
    cases: Mapping[str, Case] | None = None,
) -> Proposal:
    """Ask about every undecided hunk; the proposal with the decisions made until the end or `q`."""
    session = _Session(proposal, files, terminal, failures or {}, cases or {})
    while (place := session.next_pending()) is not None:
        seen = session.proposal
        try:
            going_on = session.one(place)
        except EOFError:
            break
        session.keep(seen)
        if not going_on:
            break
    return session.proposal


class _Session:
    def __init__(
        self,
        proposal: Proposal,
        files: Files,
        terminal: Terminal,
        failures: Mapping[str, Failure],
        cases: Mapping[str, Case],
    ) -> None:
        self.proposal = proposal
        self._files, self._terminal = files, terminal
        self._failures, self._cases = failures, cases

    def next_pending(self) -> int | None:
        states = (op.decision.state for _, _, op in hunks(self.proposal))
        return next((i for i, state in enumerate(states) if state == "pending"), None)

    def keep(self, seen: Proposal) -> None:
        """Hand on what was decided, so that nothing is lost whatever ends the review."""
        if self.proposal is seen:
            return
        kept = self._terminal.keep(seen, self.proposal)
        if kept is not self.proposal:
            self._terminal.say("somebody else decided meanwhile: this is how it stands now")
        self.proposal = kept

    def one(self, place: int) -> bool:
        """Show and ask about one hunk until it is decided or split; False ends the review."""
        listed = hunks(self.proposal)
        name, edit, op = listed[place]
        say = self._terminal.say
        for line in head_of(name, edit, op, place + 1, len(listed)):
            say(line)
        if not self._show(op):
            return True
        while True:
            key = self._terminal.ask("Accept this hunk [y,n,e,s,c,a,d,q,?]? ").strip()[:1]
            if key == "q":
                return False
            if self._act(key, place):
                return True

    def _act(self, key: str, place: int) -> bool:
        """Do what a key says; True when the hunk is done with."""
        name, edit, op = hunks(self.proposal)[place]
        if key in ("y", "n", "a", "d"):
            self._decide(key, place)
            return True
        if key == "e":
            return self._edit(name, op)
        if key == "s":
            return self._split(name)
        shown = cases_of(edit, self._failures, self._cases) if key == "c" else [HELP]
        for line in shown:
            self._terminal.say(line)
        return False

    def _show(self, op: Op) -> bool:
        try:
            diff = diff_of(self._files, self._earlier(), op)
        except HarnessError as exc:
            self._terminal.say(f"  does not apply after what was decided: {exc}")
            self._set(
                op,
                Decision(
                    state="reject", reason="did not apply", by="harness", at=now(), script=True
                ),
            )
            return False
        self._terminal.say(paint(diff, colour=self._terminal.colour).rstrip("\n"))
        return True

    def _earlier(self) -> list[Op]:
        return [
            op for _, _, op in hunks(self.proposal) if op.decision.state in ("accept", "modify")
        ]

    def _set(self, op: Op, decision: Decision) -> None:
        name = next(n for n, _, o in hunks(self.proposal) if o is op)
        self.proposal = decide(self.proposal, name, decision)

    def _decide(self, key: str, place: int) -> None:
        accepted = key in ("y", "a")
        reason = "" if accepted else self._terminal.ask("Why not? ").strip()
        state = "accept" if accepted else "reject"
        made = Decision(state=state, reason=reason, by=self._terminal.reviewer, at=now())  # type: ignore[arg-type]
        listed = hunks(self.proposal)
        edit = listed[place][1].id
        for i, (name, owner, op) in enumerate(listed):
            rest = key in ("a", "d") and i > place and owner.id == edit
            if i == place or (rest and op.decision.state == "pending"):
                self.proposal = decide(self.proposal, name, made)

    def _split(self, name: str) -> bool:
        count = len(hunks(self.proposal))
        self.proposal = split_hunk(self.proposal, name, self._files, self._earlier())
        if len(hunks(self.proposal)) == count:
            self._terminal.say("this hunk is one change")
            return False
        return True

    def _edit(self, name: str, op: Op) -> bool:
        proposed = proposed_text(self._files, self._earlier(), op)
        if proposed is None:
            self._terminal.say("there is no text to edit in this hunk")
            return False
        edited = self._terminal.edit(proposed, op.path)
        if edited is None or (not edited.strip() and proposed.strip()):
            self._terminal.say("nothing was changed")
            return False
        by = self._terminal.reviewer
        made = modified(self._files, self._earlier(), op, edited, by=by)
        self.proposal = replace_op(self.proposal, name, made)
        return True
