"use strict";
/* Finding another feature from the page of one. */

const FEW = 12; // suggestions

let chosen = 0;

function suggest() {
  const query = byId("query").value;
  const found = query.trim() ? matching(query).slice(0, FEW) : [];
  chosen = 0;
  byId("suggestions").replaceChildren(
    ...found.map((row, place) => {
      const attributes = { href: addressOf(row), role: "option", tabindex: "-1", "aria-selected": place === chosen };
      const id = element("span", { class: "id" }, String(neuroscope.columns.id[row]));
      return element("a", attributes, id, labelOf(row));
    }),
  );
  openSuggestions(found.length > 0);
}

function openSuggestions(open) {
  byId("suggestions").hidden = !open;
  byId("query").setAttribute("aria-expanded", open);
}

function stepSuggestion(step) {
  const options = [...byId("suggestions").children];
  if (!options.length) return;
  options[chosen].setAttribute("aria-selected", "false");
  chosen = (chosen + step + options.length) % options.length;
  options[chosen].setAttribute("aria-selected", "true");
}

function closeSearch() {
  byId("query").value = "";
  openSuggestions(false);
  byId("query").blur();
}
