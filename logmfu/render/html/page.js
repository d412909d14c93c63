"use strict";
// Tables sort by their headings. Everything else on the page works without this script.
document.documentElement.classList.add("js");

(function () {
  function key(row, column) {
    const cell = row.cells[column];
    const raw = cell.hasAttribute("data-sort") ? cell.getAttribute("data-sort") : cell.textContent.trim();
    const number = raw === "" ? NaN : Number(raw);
    return { empty: raw === "", number: number, text: raw };
  }

  function compare(a, b, numeric) {
    if (a.empty || b.empty) return a.empty - b.empty; // unknown ones last, whichever way
    return numeric ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true });
  }

  function sort(table, column, heading) {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [key(row, column), row]);
    const numeric = rows.every(([k]) => k.empty || !Number.isNaN(k.number));
    const sign = descending ? -1 : 1;
    rows.sort(([a], [b]) => (a.empty || b.empty ? compare(a, b, numeric) : sign * compare(a, b, numeric)));
    body.append(...rows.map(([, row]) => row));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    Array.from(table.tHead.rows[0].cells).forEach(function (heading, column) {
      if (heading.classList.contains("plain")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sort(table, column, heading));
      heading.replaceChildren(button);
    });
  }
})();
