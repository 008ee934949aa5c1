"""From two runs to a report: CSV, terminal, kill -9, and the numbers of TR §5.6."""

import csv
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from blind_runs import two_runs
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness_cli.errors import BadFile, Locked, NeedsPerson, UsageError
from harness_cli.evaluation.blind.annotations import (
    annotator_name,
    opened,
    read_annotations,
)
from harness_cli.evaluation.blind.make import read_sheet
from harness_cli.evaluation.blind.spreadsheet import bring_in, export, read_rows, safe, strangers
from harness_cli.evaluation.blind.terminal import Terminal
from harness_cli.evaluation.blind.terminal import annotate as ask_all
from harness_cli.main import app

PROGRAM = "from harness_cli.main import main; import sys; sys.argv[0] = 'harness'; main()"


def harness(*words):
    done = CliRunner().invoke(app, [str(w) for w in words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A test of ten pairs in `blind/t`, one of them shown twice, and its project's folder."""
    two_runs(tmp_path, strata={"chat": 6, "product-qa": 4})
    monkeypatch.chdir(tmp_path)
    harness("blind", "make", "r-react", "r-harness", "-o", "blind/t", "-q")
    return tmp_path


def sides(folder):
    """Pair → which letter the harness has, from the key."""
    (path,) = (folder / ".harness" / "blind").glob("*.key.json")
    entries = json.loads(path.read_text())["entries"]
    return {e["pair"]: "A" if e["a"] == "candidate" else "B" for e in entries}, {
        e["pair"] for e in entries if e.get("repeats")
    }


def fill(folder, decide):
    """Export, write `decide(pair, row) -> (choice, reason, tag)` into every row, import."""
    harness("blind", "annotate", "--export", "sheet.csv", "-q")
    with (folder / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["choice"], row["reason"], row["tag"] = decide(row["pair"], row)
    with (folder / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return harness("blind", "annotate", "--import", "filled.csv")


TABLE_10 = [
    ("input-understanding", 12), ("reliable-output", 8), ("scenario-behaviour", 8),
    ("response-quality", 5), ("tool-use", 2),
]  # fmt: skip


def test_the_blind_test_of_the_report_comes_out_of_the_whole_way(tmp_path, monkeypatch):
    """TR Tables 9 and 10: 35 / 64 / 1, 97.2 %, p < 0.001, 34.3 / 22.9 / 22.9 / 14.3 / 5.7 %."""
    two_runs(tmp_path)
    monkeypatch.chdir(tmp_path)
    harness("blind", "make", "r-react", "r-harness", "--seed", "1", "--review", "0.1", "-q")
    letter, again = sides(tmp_path)
    first = [pair for pair in letter if pair not in again]
    tags = [tag for tag, n in TABLE_10 for _ in range(n)]
    wins = dict(zip(first[:35], tags, strict=True))
    other = {"A": "B", "B": "A"}

    def decide(pair, row):
        if pair in wins:
            return letter[pair], "closer to what was asked", wins[pair]
        if pair == first[35]:
            return other[letter[pair]], "safer than an FAQ that was not asked for", "other"
        return "tie", "", ""

    assert "110 decisions taken in" in fill(tmp_path, decide).stderr
    shown = harness("blind", "report").stdout
    assert "of 36 with a preference the candidate wins 35: 97.2 %" in shown
    assert "p < 0.001 (1.08e-09)" in shown
    found = json.loads(harness("blind", "report", "--json").stdout)
    whole = found["whole"]
    assert (whole["candidate"], whole["tie"], whole["baseline"]) == (35, 64, 1)
    assert whole["p"] == pytest.approx(74 / 2**36)  # 2 · (1 + 36) / 2³⁶
    shares = {a["tag"]: round(100 * a["share"], 1) for a in found["attribution"][:5]}
    table_10 = (34.3, 22.9, 22.9, 14.3, 5.7)
    assert shares == dict(zip((tag for tag, _ in TABLE_10), table_10, strict=True))
    assert found["candidate"]["run"] == "r-harness"
    assert [c["preferred"] for c in found["cases"]] == ["baseline"] + ["candidate"] * 35
    assert found["cases"][0]["reasons"] == ["safer than an FAQ that was not asked for"]
    assert "… 31 more, --cases N shows them" in shown
    assert sum(t["candidate"] + t["tie"] + t["baseline"] for t in found["strata"]) == 100
    assert found["consistency"]["asked"] == 10


def test_a_repeated_pair_tells_how_consistent_the_annotator_is(made):
    letter, _ = sides(made)
    fill(made, lambda pair, row: (letter[pair], "better", ""))
    found = json.loads(harness("blind", "report", "--json").stdout)
    assert found["whole"]["candidate"] == 10
    assert found["consistency"]["rate"] == 1.0
    fill(made, lambda pair, row: ("A", "it stands left", ""))
    found = json.loads(harness("blind", "report", "--json").stdout)
    assert (found["consistency"]["agreed"], found["consistency"]["asked"]) == (0, 1)
    assert len(found["consistency"]["contradictions"]) == 1
    assert found["consistency"]["position_p"] == pytest.approx(2**-10)
    assert "decided in two ways" in harness("blind", "report").stdout


def test_several_annotators_count_by_majority_and_a_split_is_a_tie(made):
    letter, _ = sides(made)
    other = {"A": "B", "B": "A"}
    folder = made / "blind" / "t"
    sheet = read_sheet(folder)
    for name in ("ann", "bob", "cem"):
        with opened(folder, sheet, name) as log:
            for n, pair in enumerate(sheet.pairs):
                choice = letter[pair.id]
                if n == 0 and name != "ann":
                    choice = other[choice] if name == "bob" else "tie"
                log.add(pair.id, choice, reason="better", tag="", via="csv")
    found = json.loads(harness("blind", "report", "--json").stdout)
    assert (found["split"], found["whole"]["candidate"], found["whole"]["tie"]) == (1, 9, 1)
    assert [a["name"] for a in found["annotators"]] == ["ann", "bob", "cem"]
    assert found["alpha"] is not None
    assert found["attribution"][0]["tag"] == "untagged"


def test_the_key_stays_shut_until_everything_is_annotated(made):
    with pytest.raises(NeedsPerson, match="0 of 10 are annotated"):
        harness("blind", "report")
    folder = made / "blind" / "t"
    sheet = read_sheet(folder)
    with opened(folder, sheet, "ann") as log:
        log.add(sheet.pairs[0].id, "tie", via="csv")
    shown = harness("blind", "report", "--partial").stdout
    assert "1 of 10 pairs annotated" in shown
    with opened(folder, sheet, "ann") as log:
        for pair in sheet.pairs[1:]:
            log.add(pair.id, "tie", via="csv")
    shown = harness("blind", "report").stdout
    assert "opened 1 time before the end; 10 annotations were made after that" in shown
    assert "nobody preferred anything" in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda rows: rows[1].update(choice="C", reason="x"),
            "row 3: `C` is no choice: A, B or tie",
        ),
        (lambda rows: rows[1].update(choice="A", reason=" "), "row 3: A is preferred without a"),
        (lambda rows: rows[2].update(pair=rows[0]["pair"]), "stands in row 2 already: delete one"),
        (lambda rows: rows[0].update(pair="001-abcdef"), "row 2: `001-abcdef` is no pair of this"),
        (lambda rows: rows[0].update(tag="funny"), "row 2: `funny` is no tag: input-understanding"),
        (lambda rows: rows[0].update(choice="", reason="because"), "row 2: `` is no choice"),
    ],
)
def test_a_wrong_row_is_named_with_its_fix_and_nothing_is_taken_in(made, change, message):
    harness("blind", "annotate", "--export", "s.csv", "-q")
    rows = list(csv.DictReader(io.StringIO((made / "s.csv").read_text("utf-8-sig"))))
    for row in rows:
        row.update(choice="tie")
    change(rows)
    with (made / "s.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(BadFile) as caught:
        harness("blind", "annotate", "--import", "s.csv")
    assert message in str(caught.value)
    assert not any(read_annotations(made / "blind" / "t").values())


def test_files_that_are_no_sheet_are_refused(made):
    for text, message in (
        ("", "row 1: no column `pair`, `choice`, `reason`"),
        ("pair,reason\n", "row 1: no column `choice`"),
        ('pair,choice,reason\n"open', "no CSV"),
    ):
        (made / "s.csv").write_text(text)
        with pytest.raises(BadFile, match=message):
            harness("blind", "annotate", "--import", "s.csv")
    with pytest.raises(UsageError, match="exclude each other"):
        harness("blind", "annotate", "--import", "a", "--page")
    with pytest.raises(UsageError, match="no pair named `x`"):
        harness("blind", "annotate", "--pair", "x")
    with pytest.raises(UsageError, match="no annotator's name"):
        annotator_name("../ann")


def test_a_spreadsheet_of_another_locale_and_small_letters_are_read(made):
    sheet = read_sheet(made / "blind" / "t")
    lines = [f"{p.id};a;shorter;tool-use" for p in sheet.pairs[:3]] + [f"{sheet.pairs[3].id};;;"]
    (made / "s.csv").write_text("\ufeffpair;choice;reason;tag\r\n" + "\r\n".join(lines) + "\r\n")
    rows, empty = read_rows(made / "s.csv")
    assert [(r.choice, r.tag) for r in rows] == [("A", "tool-use")] * 3
    assert empty == 1
    with opened(made / "blind" / "t", sheet, "ann") as log:
        assert bring_in(log, made / "s.csv") == (3, 1)
        assert bring_in(log, made / "s.csv") == (0, 1)  # the same again changes nothing


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0", "'=1", "''=1", "ok", "'"]


def test_no_cell_of_the_export_is_a_formula(made):
    sheet = read_sheet(made / "blind" / "t")
    for line in csv.reader(io.StringIO(export(sheet, {}).removeprefix("\ufeff"), newline="")):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in line)
    assert strangers('nice;=cmd|x\t"+1 and a;b') == "nice;'=cmd|x\t\"'+1 and a;b"


@given(st.sampled_from(FORMULAS) | st.text(max_size=30))
def test_a_reason_survives_the_spreadsheet_and_is_no_formula_in_it(text):
    guarded = safe(text)
    assert not guarded.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    if text.lstrip("'").startswith(("=", "+", "-", "@")):
        assert guarded == "'" + text


@pytest.mark.parametrize("reason", FORMULAS[:8])
def test_reasons_that_look_like_formulas_come_back_as_they_were(made, reason):
    folder = made / "blind" / "t"
    sheet = read_sheet(folder)
    with opened(folder, sheet, "ann") as log:
        log.add(sheet.pairs[0].id, "A", reason=reason, via="terminal")
        kept = log.latest[sheet.pairs[0].id].reason
    harness("blind", "annotate", "--annotator", "ann", "--export", "s.csv", "-q")
    done = harness("blind", "annotate", "--annotator", "ann", "--import", "s.csv")
    assert "0 decisions taken in" in done.stderr
    assert read_annotations(folder)["ann"][sheet.pairs[0].id].reason == kept


def said_by(log, answers, only=()):
    """What a terminal session shows when these lines are typed."""
    lines, typed = [], iter(answers)

    def ask(question):
        lines.append(question)
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    count = ask_all(log, Terminal(say=lines.append, ask=ask), only)
    return count, "\n".join(lines)


def test_the_terminal_asks_for_a_reason_goes_back_and_keeps_what_was_said(made):
    folder = made / "blind" / "t"
    sheet = read_sheet(folder)
    first, second, third = (p.id for p in sheet.pairs[:3])
    with opened(folder, sheet, "ann") as log:
        answers = [
            "?",
            "a",
            "",
            "a",
            "names the price",
            "9",
            "2",
            "t",
            "u",
            "b",
            "shorter",
            "",
            "s",
            "q",
        ]
        count, shown = said_by(log, answers)
        assert count == 2
        assert "a preference needs a reason" in shown
        assert "q - quit" in shown
        assert (log.latest[first].choice, log.latest[first].tag) == ("A", "reliable-output")
        assert (log.latest[second].choice, log.latest[second].reason) == ("B", "shorter")
        assert log.open_pairs()[0] == third
        assert "> v1: =what about" in shown
        assert said_by(log, ["t"], only=[first])[0] == 1
    assert read_annotations(folder)["ann"][first].choice == "tie"


def test_two_sessions_of_one_person_do_not_write_at_once(made):
    folder = made / "blind" / "t"
    sheet = read_sheet(folder)
    with opened(folder, sheet, "ann"):
        with pytest.raises(Locked, match="annotation by ann"), opened(folder, sheet, "ann"):
            pass
        with opened(folder, sheet, "bob") as other:
            other.add(sheet.pairs[0].id, "tie", via="csv")


def test_a_torn_last_line_is_cut_and_everything_before_it_stays(made):
    folder = made / "blind" / "t"
    sheet = read_sheet(folder)
    with opened(folder, sheet, "ann") as log:
        for pair in sheet.pairs[:3]:
            log.add(pair.id, "tie", via="csv")
    path = folder / "annotations" / "ann.jsonl"
    path.write_bytes(path.read_bytes() + b'{"sum":"0123')
    assert len(read_annotations(folder)["ann"]) == 3
    with opened(folder, sheet, "ann") as log:
        log.add(sheet.pairs[3].id, "tie", via="csv")
    assert len(read_annotations(folder)["ann"]) == 4


def test_no_decision_is_lost_by_kill_9_at_a_terminal(made):
    """On a pseudo-terminal: whatever was asked next proves that the decision before is kept."""
    folder = made / "blind" / "t"
    sheet = read_sheet(folder)
    kept = 0
    for round_ in range(3):
        ours, its = pty.openpty()
        words = ["blind", "annotate", "--annotator", "ann"]
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=made, stdin=its, stdout=its, stderr=its, start_new_session=True,
            env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
        os.close(its)
        until(ours, b"Which is better")
        for answer in (b"a\n", b"because of 42\n", b"\n", b"t\n"):
            expects = {b"a\n": b"Why is A", b"because of 42\n": b"What kind"}
            os.write(ours, answer)
            until(ours, expects.get(answer, b"Which is better"))
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)
        kept += 2
        found = read_annotations(folder)["ann"]
        assert len(found) == kept, round_
        assert [found[p.id].choice for p in sheet.pairs[kept - 2 : kept]] == ["A", "tie"]


def until(terminal, words):
    """Read a terminal until it shows `words`."""
    shown, end = b"", time.monotonic() + 60
    while words not in shown:
        assert time.monotonic() < end, shown.decode(errors="replace")
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 1 << 16)
    return shown


def test_without_a_terminal_nobody_is_asked(made):
    with pytest.raises(NeedsPerson, match="11 pairs wait for a person"):
        harness("blind", "annotate")


def test_hostile_replies_cannot_steer_the_terminal(made):
    from harness_cli.commands._show import plain

    assert "\x1b" not in plain("nice \x1b[2J\x1b]0;owned\x07")
