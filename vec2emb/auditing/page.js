"use strict";
for (const box of document.querySelectorAll("input[data-table]")) {
  const rows = Array.from(document.getElementById(box.dataset.table).tBodies[0].rows);
  const texts = rows.map((row) => row.cells[0].firstChild.textContent.toLowerCase()); // without examples
  const told = document.getElementById(box.dataset.table + "-told");
  const search = () => {
    const wanted = box.value.toLowerCase();
    let found = 0;
    rows.forEach((row, i) => {
      row.hidden = !texts[i].includes(wanted);
      found += row.hidden ? 0 : 1;
    });
    told.textContent = wanted ? found + " of " + rows.length : "";
  };
  box.addEventListener("input", search);
  box.parentElement.hidden = false;
  search();
}
