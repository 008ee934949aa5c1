// The list of runs: search, language, theme.
function filterRuns() {
  const terms = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of document.querySelectorAll("#runs tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !terms.every((term) => text.includes(term));
    shown += !row.hidden;
  }
  $("shown").textContent = words(shown + " shown", "显示 " + shown + " 条");
}

if ($("runs")) {
  $("filters").hidden = false;
  $("filters").addEventListener("input", filterRuns);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  startFrame(filterRuns);
}
document.documentElement.setAttribute("data-ready", "true");
