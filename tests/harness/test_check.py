import json

import pytest
from small_harness import FILES, HOOK, LOAD, PIPELINE, SKILL, TOOL, changed_files

from harness_cli.errors import BadFile
from harness_cli.harness.check import check_files
from harness_cli.harness.findings import as_json, as_sarif, as_text
from harness_cli.harness.hook_checks import CHECKS
from harness_cli.harness.load import state_from_files
from harness_cli.harness.tools import tool_digest
from harness_cli.records.canonical import canonical_json
from harness_cli.records.harness import Tool
from harness_cli.runtime.hooks import registry
from harness_cli.store.tree import FILE, GITLINK, SYMLINK, Entry

H, T, P, S = (
    "hooks/reply-length.yaml",
    "tools/get_price.yaml",
    "prompts/pipeline.yaml",
    "skills/item-qa/SKILL.md",
)


def broken(path, old, new):
    assert old in FILES[path], "the test must change something"
    return check_files(changed_files({path: FILES[path].replace(old, new)}))


def test_the_small_harness_has_no_findings():
    assert check_files(changed_files({})) == []


WRONG = [
    # hooks
    (H, "check: length", "check: lenght", "hook/unknown-check", 5, "did you mean `length`?"),
    (H, "{constraint:", "{constrain:", "hook/unknown-setting", 6, "did you mean `constraint`?"),
    (H, "constraint: reply_length", "constraint: reply_lenght", "hook/setting", 6,
     "did you mean `reply_length`?"),
    (H, "constraint: reply_length", "constraint: {a: 1}", "hook/setting", 6, ""),
    (H, '["(?i)guarantee"]', '["a{99999999999}"]', "hook/setting", 8, "quotes"),
    (H, "constraint: reply_length", "max_chars: 0", "hook/setting", 6, ""),
    (H, "constraint: reply_length", "max_chars: many", "hook/setting", 6, ""),
    (H, "with: {constraint: reply_length}", "with: {}", "hook/setting", 5, "give it"),
    (H, '["(?i)guarantee"]', '["("]', "hook/setting", 8, "quotes"),
    (H, '["(?i)guarantee"]', '"x"', "hook/setting", 8, "[…, …]"),
    (H, "on: reply", "on: replies", "hook/setting", 8, "reply, comment, arguments"),
    (H, "event: before_reply", "event: before_replies", "hook/file", 3,
     "did you mean `before_reply`?"),
    (H, "schema: 1", "schema: [", "hook/file", 3, "bracket"),
    (H, "event: before_reply", "event: before_reply\nwhen: chanel == private", "hook/condition", 4,
     "did you mean `channel`?"),
    (H, "name: reply-length", "name: other", "hook/name", 2, "name: reply-length"),
    (H, "schema: 1", "schema: 9", "file/schema", 1, "harness migrate"),
    (H, "action: retry", "action: retry\ntimeout_s: 0", "hook/time", 10, ""),
    (H, "action: retry", "action: retri", "hook/file", 9, "did you mean `retry`?"),
    (H, "action: retry", "action: retry\nmax_retries: many", "hook/file", 10, "whole number"),
    (H, "event: before_reply\n", "", "hook/file", 1, "add `event: …`"),
    (H, "action: retry", "acton: retry", "hook/file", 9, "did you mean `action`?"),
    (H, "action: retry", "action: retry\ncommand: [hooks/none.py]", "hook/command", 10, "commit"),
    (H, "action: retry", "action: retry\ncommand: [x]", "hook/empty", 3, "give it one"),
    # tools
    (T, "name: get_price", "name: get price", "tool/name", 1, "letters"),
    (T, "name: get_price", "name: " + "x" * 129, "tool/name", 1, "128"),
    (T, "name: get_price", "name: load_skill", "tool/name", 0, "rename one"),
    (T, "type: integer", "type: intger", "tool/schema", 6, ""),
    (T, "  type: object\n", "  type: array\n", "tool/schema", 3, "MCP"),
    (T, "minimum: 1", "$ref: '#/$defs/x'", "tool/schema", 6, "$defs"),
    (T, "minimum: 1", "$ref: 'https://example.invalid/x.json'", "tool/schema", 6, "fetched"),
    (T, "minimum: 1", "pattern: '('", "tool/schema", 6, ""),
    (T, "minimum: 1", "pattern: 'a{99999999999}'", "tool/schema", 6, ""),
    (T, "required: [link_id]", "required: [link]", "tool/schema", 7, "properties"),
    (T, "required: [link_id]", "required: [[link_id], {a: 1}]", "tool/schema", 7, ""),
    (T, "inputSchema:", "inputSchem:", "tool/file", 3, "did you mean `inputSchema`?"),
    (T, "  type: object\n", "  $schema: http://json-schema.org/draft-07/schema#\n  type: object\n",
     "tool/schema", 4, "2020-12"),
    (T, "annotations:", "_meta: {harness.executor: sandbx}\nannotations:", "tool/executor", 9,
     "did you mean `sandbox`?"),
    (T, "annotations:", "_meta: {harness.arguments: {lnk: x}}\nannotations:", "tool/arguments", 9,
     ""),
    # pipeline
    (P, "- {name: faq,", "- {name: faqs,", "pipeline/block", 5, "prompts/blocks/faqs.md"),
    (P, "- {name: products}", "- {name: base}", "pipeline/block", 4, "remove one"),
    (P, "when: faq}", "when: fax}", "pipeline/condition", 5, "did you mean `faq`?"),
    (P, "value: 80", "value: 20", "pipeline/constraint", 9, "widen"),
    (P, "range: [40, 200]", "range: [200, 40]", "pipeline/constraint", 9, ""),
    (P, "range: [40, 200]", "range: [40]", "pipeline/file", 9, ""),
    (P, "value: 80", "value: eighty", "pipeline/file", 9, "whole number"),
    (P, "role: user", "role: viewer", "pipeline/file", 7, "known: system, user"),
    # blocks
    ("prompts/blocks/base.md", "{% for", "{% fro", "block/template", 2, ""),
    ("prompts/blocks/base.md", "constraints.reply_length", "constraints.reply", "block/variable", 1,
     "reply_length"),
    ("prompts/blocks/base.md", "skills %}", "skils %}", "block/variable", 2, "skills"),
    ("prompts/blocks/base.md", "skill.description", "skill.price", "block/render", 3,
     "prompt_variables"),
    ("prompts/blocks/ended.md", "ended.", "ended. {{ request.now }}", "block/variable", 1,
     "channel"),
    ("prompts/blocks/ended.md", "ended.", "{{ ''.__class__ }}", "block/render", 1, ""),
    # skills
    (S, "harness.tools: get_price", "harness.tools: get_prize", "skill/tools", 9,
     "did you mean `get_price`?"),
    # replies
    ("replies.yaml", "zh: 请稍等。", "zh: ' '", "replies/text", 2, ""),
    ("replies.yaml", "zh: 请稍等。", "Chinese language: x", "replies/language", 2, "zh"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "old", "new", "rule", "line", "fix"),
    WRONG,
    ids=[f"{row[3]}-{number}" for number, row in enumerate(WRONG)],
)
def test_each_mistake_is_an_error_at_its_line_with_its_fix(path, old, new, rule, line, fix):
    findings = [f for f in broken(path, old, new) if f.level == "error"]
    fitting = [f for f in findings if (f.rule, f.line) == (rule, line) and fix in f.fix]
    assert fitting, findings
    assert all(f.fix for f in findings)
    assert fitting[0].path in (path, "tools/load_skill.yaml")
    with pytest.raises(BadFile):
        state_from_files(changed_files({path: FILES[path].replace(old, new)}))


WARNED = [
    (S, "`get_price`: for", "`get_prize`: for", "skill/reference", 22, "did you mean `get_price`?"),
    (S, "Name the link", "Use `item-q`, name the link", "skill/reference", 18, "item-qa"),
    (S, "channel: public private", "channel: telephone", "skill/channel", 8, "public"),
    (H, "event: before_reply", "event: request", "hook/event", 5, "before_reply"),
    (H, "event: before_reply", "event: before_reply\ntools: [get_*]", "hook/tools", 4, "remove"),
    (P, "  - {name: comments, role: user}\n", "", "pipeline/user", 2, "role: user"),
    ("replies.yaml", ", zh: 请稍等。", "", "replies/language", 2, "Chinese"),
]


@pytest.mark.parametrize(
    ("path", "old", "new", "rule", "line", "fix"), WARNED, ids=[row[3] for row in WARNED]
)
def test_what_is_merely_doubtful_is_a_warning_and_the_state_loads(path, old, new, rule, line, fix):
    findings = broken(path, old, new)
    assert any(
        (f.rule, f.line, f.level) == (rule, line, "warning") and fix in f.fix for f in findings
    ), findings
    assert not [f for f in findings if f.level == "error"]
    state_from_files(changed_files({path: FILES[path].replace(old, new)}))


def test_everything_wrong_is_found_at_once_and_told_in_one_error():
    changed = {
        H: HOOK.replace("check: length", "check: lenght").replace("action: retry", "acton: retri"),
        T: TOOL.replace("type: integer", "type: intger"),
        P: PIPELINE.replace("value: 80", "value: 20"),
        S: SKILL.replace("name: item-qa", "name: item_qa"),
        "tools/other.yml": "x",
    }
    rules = {f.rule for f in check_files(changed_files(changed))}
    assert {
        "hook/file",
        "tool/schema",
        "pipeline/constraint",
        "skill/name",
        "file/not-read",
    } <= rules
    with pytest.raises(BadFile) as caught:
        state_from_files(changed_files(changed))
    for path in (H, T, P, S, "tools/other.yml"):
        assert path in str(caught.value)


def test_several_wrong_fields_of_one_file_are_all_listed():
    text = "schema: 1\nname: reply-length\nevent: never\nchecks: x\nacton: retry\npriority: high\n"
    findings = check_files(changed_files({H: text}))
    assert [f.line for f in findings if f.path == H] == [3, 4, 5, 6]


@pytest.mark.parametrize("mode", [SYMLINK, GITLINK])
@pytest.mark.parametrize("path", [S, "skills/x/SKILL.md", "judges/a/prompts/pipeline.yaml", "x"])
def test_links_and_submodules_are_findings_and_never_read(mode, path):
    files = {**changed_files({}), path: Entry(mode, b"/etc/passwd")}
    findings = check_files(files)
    assert any(f.rule == "file/link" and f.path == path for f in findings)
    assert "root:" not in as_text(findings)


@pytest.mark.parametrize("name", ["skills/a\nb/SKILL.md", "x\x1b[31m.md", "lat\udce9.md"])
def test_a_file_name_no_terminal_can_show_is_a_finding_that_can_be_shown(name):
    findings = check_files({**changed_files({}), name: Entry(FILE, b"x")})
    assert [f.rule for f in findings if f.path == name] == ["file/name"]
    assert "\x1b" not in as_text(findings)
    json.dumps(as_json(findings)).encode()
    json.dumps(as_sarif(findings)).encode()


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("skills/item-qb/skill.md", "skill/place"),
        ("skills/SKILL.md", "skill/place"),
        ("skills/a/b/SKILL.md", "skill/place"),
        ("skills/empty/notes.md", "skill/missing"),
        ("hooks.yml", "file/not-read"),
    ],
)
def test_a_skill_at_a_wrong_place_is_not_silently_absent(path, rule):
    findings = check_files(changed_files({path: SKILL}))
    assert rule in {f.rule for f in findings if f.level == "error"}


@pytest.mark.parametrize(
    ("gone", "rule", "level"),
    [
        (S, "skill/none", "error"),
        ("tools/load_skill.yaml", "skill/load", "error"),
        (P, "pipeline/missing", "error"),
        ("prompts/blocks/base.md", "pipeline/block", "error"),
        ("fallback.md", "fallback/missing", "warning"),
        ("replies.yaml", "replies/missing", "warning"),
    ],
)
def test_what_is_missing_is_said(gone, rule, level):
    findings = check_files(changed_files({gone: None}))
    assert (rule, level) in {(f.rule, f.level) for f in findings}


def test_strategy_skills_alone_are_no_way_to_reply():
    findings = broken(S, "harness.kind: reply", "harness.kind: strategy")
    assert [f.rule for f in findings] == ["skill/none"]


def mcp(text="", sha256=None):
    tool = Tool(name="add", description="Adds.", input_schema={"type": "object"})
    lock = {
        "schema": 1,
        "servers": {"calc": {"add": {"sha256": sha256 or tool_digest(tool), "tool": tool}}},
    }
    server = "schema: 1\nservers:\n  calc:\n    command: [calc]\n" + text
    return {"tools/mcp.yaml": server, "tools/mcp.lock.json": canonical_json(lock)}


def test_a_locked_server_is_fine_and_its_tools_are_known():
    hook = HOOK.replace("constraint: reply_length", "constraint: reply_length").replace(
        'check: forbid_pattern\n    with: {patterns: ["(?i)guarantee"], on: reply}',
        "check: tool_required\n    with: {triggers: [x], tools: [add]}",
    )
    assert check_files(changed_files({**mcp(), H: hook})) == []


@pytest.mark.parametrize(
    ("changed", "rule", "level"),
    [
        (mcp(sha256="0" * 64), "mcp/lock", "error"),
        (mcp("    tools: [add, sub]\n"), "mcp/lock", "error"),
        (mcp("    call_timeout_s: 0\n"), "mcp/server", "error"),
        ({**mcp(), "tools/mcp.lock.json": None}, "mcp/lock", "warning"),
        ({**mcp(), "tools/mcp.lock.json": "{"}, "mcp/lock", "error"),
        ({**mcp(), "tools/mcp.yaml": None}, "mcp/lock", "error"),
        ({**mcp(), "tools/mcp.yaml": "schema: 1\nservers: {calc: {}}\n"}, "mcp/server", "error"),
        ({**mcp(), "tools/mcp.yaml": "schema: 1\nservers: {calc: {transport: http}}\n"},
         "mcp/server", "error"),
        ({**mcp(), "tools/add.yaml": TOOL.replace("get_price", "add")}, "tool/name", "error"),
    ],
)  # fmt: skip
def test_servers_and_their_lock_must_fit(changed, rule, level):
    findings = check_files(changed_files(changed))
    assert (rule, level) in {(f.rule, f.level) for f in findings}, findings


def test_a_command_hook_must_be_able_to_start():
    hook = "schema: 1\nname: x\nevent: request\ncommand: [hooks/run.sh, hooks/data.json]\n"
    files = {"hooks/x.yaml": hook, "hooks/run.sh": "#!/bin/sh\n", "hooks/data.json": "{}"}
    assert check_files(changed_files(files)) == []
    plain = changed_files(files)
    plain["hooks/run.sh"] = Entry(FILE, b"#!/bin/sh\n")
    [finding] = check_files(plain)
    assert (finding.rule, finding.line) == ("hook/command", 4)
    assert "python3" in finding.fix


SUBMIT = (
    "name: submit\ndescription: Give the verdict.\n"
    "_meta: {harness.executor: builtin, harness.operation: answer}\n"
)


def test_a_judge_is_checked_as_a_harness_of_its_own():
    judge = {
        "judges/final/prompts/pipeline.yaml": "schema: 1\nblocks: [{name: rubric}]\n",
        "judges/final/prompts/blocks/rubric.md": "Grade it. {{ today }}\n",
        "judges/final/tools/submit.yaml": SUBMIT,
    }
    assert check_files(changed_files(judge)) == []
    judge["judges/final/prompts/blocks/rubric.md"] = "{{ tody }}"
    [finding] = check_files(changed_files(judge))
    assert finding.path == "judges/final/prompts/blocks/rubric.md"


@pytest.mark.parametrize(
    ("path", "text", "rule", "words"),
    [
        ("tools/submit.yaml", SUBMIT.replace("answer}", "refuse}"), "judge/answer", "unscored"),
        (
            "prompts/pipeline.yaml",
            "schema: 1\nblocks:\n  - {name: rubric, role: user}\n",
            "judge/case",
            "where the case stands",
        ),
        (
            "hooks/cited.yaml",
            "schema: 1\nname: cited\nevent: before_tool\nchecks:\n"
            "  - {check: skills_required, with: {skills: [rubrik]}}\naction: deny\n",
            "hook/setting",
            "no skill `rubrik`",
        ),
    ],
)
def test_a_judge_that_could_reach_no_verdict_is_an_error(path, text, rule, words):
    judge = {
        "judges/final/prompts/pipeline.yaml": "schema: 1\nblocks: [{name: rubric}]\n",
        "judges/final/prompts/blocks/rubric.md": "Grade it.\n",
        "judges/final/tools/submit.yaml": SUBMIT,
    }
    [finding] = check_files(changed_files({**judge, f"judges/final/{path}": text}))
    assert (finding.rule, finding.level) == (rule, "error")
    assert words in finding.message


def test_failure_classes_are_decoded():
    good = "---\nid: wrong-price\nname: Wrong price\ndefinition: A wrong one.\n---\nText\n"
    path = "failure_classes/wrong-price.md"
    assert check_files(changed_files({path: good})) == []
    for text, line in (
        (good.replace("id: wrong-price", "id: other"), 0),
        (good.replace("name:", "nme:"), 3),
        (good.replace("definition: A wrong one.\n", ""), 0),
        ("no frontmatter", 1),
    ):
        findings = check_files(changed_files({path: text}))
        assert findings, text
        assert {f.path for f in findings} == {path}
        assert not line or line in {f.line for f in findings}


def test_the_table_of_checks_is_the_one_the_runtime_carries_out():
    assert set(CHECKS) == set(registry.CHECKS)
    for name, check in CHECKS.items():
        assert set(check.settings) == set(registry.settings_of(name)), name


def test_text_json_and_sarif_tell_the_same():
    findings = broken(H, "check: length", "check: lenght")
    [finding] = findings
    assert as_text(findings) == (
        "hooks/reply-length.yaml:5: error: no built-in check `lenght` [hook/unknown-check]\n"
        "    fix: did you mean `length`?"
    )
    assert as_json(findings)["findings"][0] == {
        "path": H, "line": 5, "column": 0, "level": "error", "rule": "hook/unknown-check",
        "message": "no built-in check `lenght`", "fix": "did you mean `length`?",
    }  # fmt: skip
    run = as_sarif(findings)["runs"][0]
    assert run["results"] == [
        {
            "ruleId": "hook/unknown-check",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": f"{finding.message}\nFix: {finding.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": H, "uriBaseId": "PROJECT"},
                        "region": {"startLine": 5},
                    }
                }
            ],
        }
    ]
    assert run["tool"]["driver"]["rules"][0]["id"] == "hook/unknown-check"
    assert as_sarif([])["version"] == "2.1.0"


def test_the_loader_of_skills_may_be_called_anything():
    renamed = LOAD.replace("name: load_skill", "name: open_module").replace(
        "harness.executor: builtin", "harness.executor: builtin, harness.operation: load_skill"
    )
    files = {"tools/load_skill.yaml": None, "tools/open_module.yaml": renamed}
    assert check_files(changed_files(files)) == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_unresolved_merge_is_an_error_at_its_line(end):
    sides = end.join(["A.", "<<<<<<< HEAD", "B.", "=======", "C.", ">>>>>>> side", ""])
    found = check_files(changed_files({"fallback.md": sides}))
    [finding] = [f for f in found if f.level == "error"]
    assert (finding.rule, finding.line, finding.level) == ("file/conflict", 2, "error")
    assert finding.fix
    rules = end.join(["A heading", "=======", "text", ">>>>>>> quoted", "<<<<<<< drawn", ""])
    assert check_files(changed_files({"fallback.md": rules})) == []
