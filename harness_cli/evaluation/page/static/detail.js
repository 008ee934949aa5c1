// One item in a dialog: what was asked, said, called, checked, and what the judge found.
function part(kind, who, ...content) {
  return el("div", { class: "part is-" + kind }, el("div", { class: "who" }, who), content);
}

function text(value) {
  return value ? el("div", { class: "text", dir: "auto" }, value) : null;
}

function code(value) {
  return value ? el("pre", { dir: "auto" }, value) : null;
}

// A long text is folded; its first line says what it is.
function folded(value) {
  if (!value || value.length < 600) return code(value);
  const first = value.slice(0, 90).split("\n")[0];
  return el("details", {}, el("summary", {}, first + " … (" + value.length + ")"), code(value));
}

function hooks(found) {
  return (found || []).map((h) =>
    part("hook", "hook " + h.hook + (h.check ? " (" + h.check + ")" : ""),
      text(h.event + ": " + h.outcome + (h.reason ? " · " + h.reason : ""))));
}

function call(c) {
  const times = c.latency_s ? " · " + c.latency_s.toFixed(3) + " s" : "";
  return part(c.error ? "error" : "call", [say("tool call ", "工具调用 "), c.name + times + (c.cached ? " · cached" : "")],
    code(c.arguments),
    c.error ? text("error: " + c.error) : null,
    folded(c.content),
    c.structured ? folded(c.structured) : null);
}

function stepParts(step, index) {
  const model = step.model || {};
  const about = [model.name, model.finish, model.latency_s ? model.latency_s.toFixed(3) + " s" : "",
    model.input || model.output ? (model.input ?? "?") + " + " + (model.output ?? "?") + " tokens" : "",
    model.attempts ? model.attempts + " attempts" : "", model.cached ? "cached" : "",
    step.fallback ? "fallback policy" : ""];
  return [
    el("h3", {}, say("Step ", "步骤 "), index + 1),
    (step.messages || []).map((m) => part(m.role, m.role, folded(m.text), code(m.more))),
    step.error ? part("error", "error", text(step.error)) : null,
    step.reasoning ? part("assistant", say("reasoning", "推理"), folded(step.reasoning)) : null,
    part("assistant", about.filter(Boolean).join(" · ") || "model", text(step.content),
      (step.asked || []).map((a) => code(a))),
    (step.calls || []).map(call),
    hooks(step.hooks),
  ];
}

function scores(found) {
  return Object.entries(found || {}).map(([name, value]) => name + " " + score(value)).join(" · ");
}

function verdictParts(v) {
  return [
    el("h3", {}, say("Verdict", "裁决")),
    el("p", {}, [v.judge, v.cached ? "cached" : "", scores(v.scores)].filter(Boolean).join(" · ")),
    v.unscored ? part("error", "unscored", text(v.unscored)) : null,
    v.error ? part("error", "error", text(v.error)) : null,
    (v.findings || []).map((f) => part("error", f.kind, text(f.detail),
      f.quote ? text("“" + f.quote + "”") : null, code(f.evidence))),
    (v.assertions || []).map((a) => part(a.passed === false ? "error" : "call",
      a.type + ": " + (a.passed === null ? "undecided" : a.passed ? "holds" : "does not hold"), text(a.reason))),
    (v.votes || []).map((vote, i) => part("call", [say("vote ", "投票 "), i + 1], folded(vote))),
  ];
}

function trajectoryParts(t) {
  const about = [t.agent, t.policy, t.stop && "stop " + t.stop, t.route && "route " + t.route,
    t.channel, t.wall_s ? t.wall_s.toFixed(3) + " s" : "", (t.skills || []).length ? "skills " + t.skills.join(", ") : ""];
  return [
    el("p", { class: "quiet" }, about.filter(Boolean).join(" · ")),
    (t.steps || []).map(stepParts),
    (t.hooks || []).length ? [el("h3", {}, say("Hooks of the request", "请求级 Hook")), hooks(t.hooks)] : null,
    el("h3", {}, say("Reply", "回复")),
    part("assistant", t.reply ? say("said", "已发送") : say("silent", "未回复"), text(t.reply), (t.actions || []).map(code)),
    t.error ? part("error", "error", text(t.error)) : null,
    t.offered ? el("details", {}, el("summary", {}, say("Tools offered", "可用工具")), text(t.offered)) : null,
  ];
}

function beforeParts(b) {
  return b ? [
    el("h3", {}, say("What the incumbent did", "在任版本的表现"), " (" + b.run + ")"),
    part("user", b.change + " · " + b.states.join(", ") + " · " + scores(b.scores), text(b.reply), b.findings.map(text)),
  ] : null;
}

async function showDetail(row, neighbours) {
  const dialog = $("detail");
  const go = (next) => next && showDetail(next, neighbours);
  const at = neighbours.indexOf(row);
  const [previous, next] = [neighbours[at - 1], neighbours[at + 1]];
  const bar = el("div", { class: "bar" },
    el("h2", { id: "detail-title" }, row.id + (row.repeat ? " #" + row.repeat : "") + " · " + row.state),
    el("button", { type: "button", id: "previous", disabled: !previous, click: () => go(previous) }, say("Previous", "上一条")),
    el("button", { type: "button", id: "next", disabled: !next, click: () => go(next) }, say("Next", "下一条")),
    el("button", { type: "button", id: "close", click: () => dialog.close() }, say("Close", "关闭")));
  const body = el("div", { id: "detail-body" }, say("Opening …", "打开中…"));
  dialog.replaceChildren(bar, body);
  dialog.onkeydown = (event) => {
    if (event.key === "ArrowLeft") go(previous);
    if (event.key === "ArrowRight") go(next);
  };
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  $("close").focus();
  let parts;
  try {
    const found = await details(row);
    parts = found
      ? [beforeParts(found.b), verdictParts(found.v), trajectoryParts(found.t)]
      : [el("p", {}, say("This trajectory is not in the page: ", "本页未收录该轨迹："), "harness show trajectory " + row.id), text(row.reply), text(row.why)];
  } catch (error) {
    parts = [el("p", { class: "remark" }, "This trajectory cannot be opened: " + error.message)];
  }
  body.replaceChildren(...parts.flat(9).filter(Boolean));
}
