// Starts the page: language, theme, filters, printing, keys.
function start() {
  loadItems();
  fillFilters();
  drawHead();
  $("filters").hidden = false;
  startFrame(() => {
    drawHead();
    filterRows();
  });
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
  performance.mark("ready");
}

start();
