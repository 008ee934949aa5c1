// The table of items: searched, filtered, sorted, a page at a time.
const PAGE = 100;
const PRINTED = 2000;
const FILTERS = ["state", "category", "kind", "tag", "change"];
const view = { rows: [], found: [], sort: "", down: false, from: 0 };
let report = {};

function loadItems() {
  report = JSON.parse($("data").textContent);
  view.rows = report.items;
  view.rows.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : (a.repeat || 0) - (b.repeat || 0)));
  for (const row of view.rows) {
    row.lower = [row.id, row.category, row.state, row.ask, row.reply, row.why, ...(row.tags || []),
      ...(row.kinds || []), ...(row.tools || []), ...(row.skills || [])].join("\n").toLowerCase();
  }
}

function valuesOf(row, filter) {
  if (filter === "kind") return row.kinds || [];
  if (filter === "tag") return row.tags || [];
  return row[filter] ? [row[filter]] : [];
}

function fillFilters() {
  for (const filter of FILTERS) {
    const counts = new Map();
    for (const row of view.rows) {
      for (const value of valuesOf(row, filter)) counts.set(value, (counts.get(value) || 0) + 1);
    }
    const options = [...counts].sort((a, b) => b[1] - a[1])
      .map(([value, n]) => el("option", { value }, value + " (" + n + ")"));
    const select = $("f-" + filter);
    select.replaceChildren(el("option", { value: "" }, "–"), ...options);
    select.disabled = options.length === 0;
  }
}

function columns() {
  return [
    ["id", words("item", "条目"), (r) => r.id + (r.repeat ? " #" + r.repeat : "")],
    ["category", words("category", "类别"), (r) => r.category],
    ["state", words("state", "状态"), (r) => r.state],
    ...report.metrics.map((m) => ["m:" + m, m, (r) => (r.scores || {})[m]]),
    ["ask", words("asked", "提问"), (r) => r.ask],
    ["reply", words("reply", "回复"), (r) => r.reply],
    ["why", words("why not", "原因"), (r) => r.why],
    ["wall", "s", (r) => r.wall],
  ];
}

function filterRows() {
  const terms = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = FILTERS.map((f) => [f, $("f-" + f).value]).filter(([, value]) => value);
  view.found = view.rows.filter((row) =>
    terms.every((term) => row.lower.includes(term)) &&
    chosen.every(([filter, value]) => valuesOf(row, filter).includes(value)));
  const column = columns().find(([name]) => name === view.sort);
  if (column) sortRows(column[2]);
  view.from = 0;
  drawRows();
}

function sortRows(value) {
  const sign = view.down ? -1 : 1;
  const known = (v) => v !== undefined && v !== null && v !== "";
  view.found.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (!known(x) || !known(y)) return known(y) - known(x);
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  });
}

function drawHead() {
  const cells = columns().map(([name, title]) => {
    const order = view.sort === name ? (view.down ? "descending" : "ascending") : "none";
    const sort = () => {
      view.down = view.sort === name && !view.down;
      view.sort = name;
      drawHead();
      filterRows();
    };
    const mark = order === "none" ? "" : view.down ? " ↓" : " ↑";
    return el("th", { scope: "col", "aria-sort": order }, el("button", { type: "button", click: sort }, title + mark));
  });
  $("table").tHead.replaceChildren(el("tr", {}, cells));
}

function line(row) {
  const cells = columns().map(([name, , value]) => {
    if (name === "id") {
      const open = el("button", { type: "button", class: "open", click: () => openRow(row) }, value(row));
      return el("th", { scope: "row" }, open);
    }
    if (name === "state") {
      const change = row.change ? el("span", { class: row.change }, " " + row.change) : null;
      return el("td", { class: "state is-" + row.state }, row.state, change);
    }
    if (name.startsWith("m:")) return el("td", {}, score(value(row)));
    const wide = name === "ask" || name === "reply" || name === "why";
    return el("td", { class: wide ? "say" : null, dir: wide ? "auto" : null }, value(row));
  });
  return el("tr", {}, cells);
}

function drawRows(most = PAGE) {
  const shown = view.found.slice(view.from, view.from + most);
  $("table").tBodies[0].replaceChildren(...shown.map(line));
  const [n, all] = [view.found.length, view.rows.length];
  const range = n ? view.from + 1 + "–" + (view.from + shown.length) : "0";
  $("shown").textContent = words(range + " of " + n + " found, " + all + " in all",
    "第 " + range + " 条，符合 " + n + " 条，共 " + all + " 条");
  drawPager();
}

function drawPager() {
  const turn = (from) => () => { view.from = from; drawRows(); };
  const [last, n] = [view.from - PAGE, view.found.length];
  $("pager").hidden = n <= PAGE;
  $("pager").replaceChildren(
    el("button", { type: "button", disabled: last < 0, click: turn(Math.max(last, 0)) }, say("Previous page", "上一页")),
    el("button", { type: "button", disabled: view.from + PAGE >= n, click: turn(view.from + PAGE) }, say("Next page", "下一页")));
}

function openRow(row) {
  history.replaceState(null, "", "#item=" + encodeURIComponent(row.id) + (row.repeat ? "&repeat=" + row.repeat : ""));
  showDetail(row, view.found.includes(row) ? view.found : [row]);
}

// `#item=ID` in the address opens that item; `#` and any other name leave the page as it is.
function openAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const row = view.rows.find((r) => r.id === asked.get("item") && (r.repeat || 0) === Number(asked.get("repeat") || 0));
  if (row) showDetail(row, view.found.includes(row) ? view.found : [row]);
}
