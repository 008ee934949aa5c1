// Starts the page: language, theme, filters, printing, keys.
function start() {
  loadItems();
  fillFilters();
  drawHead();
  document.querySelector(".tools").hidden = false;
  $("filters").hidden = false;
  const chosen = (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
  choose(chosen);
  $("language").addEventListener("click", () => choose(language === "zh" ? "en" : "zh"));
  $("theme").addEventListener("click", turnTheme);
  $("print").addEventListener("click", () => window.print());
  $("filters").addEventListener("input", filterRows);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("reset", () => setTimeout(filterRows, 0));
  $("detail").addEventListener("close", () => history.replaceState(null, "", "#items"));
  for (const link of document.querySelectorAll("[data-item]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const row = view.rows.find((r) => r.id === link.dataset.item);
      if (row) openRow(row);
    });
  }
  window.addEventListener("hashchange", openAddress);
  window.addEventListener("beforeprint", () => { view.from = 0; drawRows(PRINTED); });
  window.addEventListener("afterprint", () => drawRows());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !$("detail").open) {
      event.preventDefault();
      $("search").focus();
    }
  });
  openAddress();
  document.documentElement.setAttribute("data-ready", "true");
}

function choose(chosen) {
  speak(chosen);
  $("language").textContent = chosen === "zh" ? "English" : "中文";
  drawHead();
  filterRows();
}

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

start();
