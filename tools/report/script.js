// Search, sorting and copying. The page says the same without it; it asks no network and keeps nothing.
"use strict";
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const made = (tag, name, text) => Object.assign(document.createElement(tag), { className: name, textContent: text });
const button = (name, text, act) => {
  const found = Object.assign(made("button", name, text), { type: "button" });
  found.addEventListener("click", act);
  return found;
};
const lower = new WeakMap();
const wordsOf = (element) => {
  if (!lower.has(element)) lower.set(element, element.textContent.toLowerCase());
  return lower.get(element);
};
const search = Object.assign(made("input", "search", ""), { type: "search", placeholder: "Search this page" });
search.setAttribute("aria-label", search.placeholder);
const sought = () => search.value.trim().toLowerCase();

// A table and what is folded behind it become one, which is shown up to where the fold was.
const limits = new Map();
const rowsOf = (table) => [...table.tBodies[0].rows];
for (const more of all("details.more")) {
  const before = more.previousElementSibling;
  const table = before.matches("table") ? before : before.querySelector("table");
  limits.set(table, rowsOf(table).length);
  table.tBodies[0].append(...all("tbody tr", more));
  const show = () => { limits.delete(table); more.nextElementSibling.remove(); refresh(table, ""); };
  more.after(button("show", `Show all ${rowsOf(table).length.toLocaleString("en")}`, show));
  more.hidden = true;
}

// The rows in which `words` are; all if the table is asked for by its heading.
const refresh = (table, words) => {
  const limit = words ? Infinity : limits.get(table) ?? Infinity;
  rowsOf(table).forEach((row, index) => { row.hidden = index >= limit || !wordsOf(row).includes(words); });
};
const tables = all("table").filter((table) => !table.closest("details.partition"));
tables.forEach((table) => refresh(table, ""));
search.addEventListener("input", () => {
  const words = sought();
  for (const table of tables) {
    const heading = table.closest(".finding")?.querySelector("h3");
    refresh(table, heading && wordsOf(heading).includes(words) ? "" : words);
  }
  for (const one of all(".finding, details.partition")) {
    const place = one.matches("details") ? one.querySelector("summary") : one;
    one.hidden = !wordsOf(place).includes(words);
  }
});

const collator = new Intl.Collator("en", { numeric: true });
const keyOf = (row, column) => {
  const cell = row.cells[column];
  return cell.querySelector("[data-key]")?.dataset.key ?? cell.textContent.replace(/,(?=\d{3})/g, "");
};
const compare = (one, other) => (one - other) || collator.compare(one, other);
for (const table of all("table")) {
  all("th", table).forEach((head, column) => {
    if (rowsOf(table).every((row) => !keyOf(row, column))) return; // pictures
    const sort = () => {
      const isDown = head.getAttribute("aria-sort") === "ascending";
      all("th", table).forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const keyed = rowsOf(table).map((row) => [keyOf(row, column), row]);
      keyed.sort(([one], [other]) => (isDown ? compare(other, one) : compare(one, other)));
      table.tBodies[0].append(...keyed.map(([, row]) => row));
      if (tables.includes(table)) refresh(table, sought());
    };
    head.replaceChildren(button("sort", head.textContent, sort));
  });
}

for (const line of all(".command")) {
  const code = line.querySelector("code");
  const copy = button("copy", "Copy", async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Selected"; // a browser that lets no page write there
    }
  });
  line.append(copy);
}

const reveal = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details")) target.open = true;
};
addEventListener("hashchange", reveal);
reveal();
document.querySelector("nav").append(search);
