"use strict";
/* The index: what is asked for, by search, flags and sorting, and what is shown. */

const state = { query: "", sort: "id", down: false, flags: new Set(), chosen: -1, order: [] };

/** Work out which rows are shown and in which order, then draw from the top. */
function refresh() {
  const wanted = [...state.flags].map((place) => 1 << place);
  const found = matching(state.query).filter((row) => wanted.every((bit) => neuroscope.columns.flags[row] & bit));
  const first = numbered(state.query);
  state.order = sorted(found);
  if (first !== null && found.includes(first)) {
    state.order = [first, ...state.order.filter((row) => row !== first)];
  }
  state.chosen = -1;
  remember();
  mark();
  measure();
  redraw();
}

function mark() {
  const all = neuroscope.columns.id.length;
  const n = state.order.length;
  byId("found").textContent = n === all ? plural(all, "feature") : `${whole.format(n)} of ${plural(all, "feature")}`;
  byId("nothing").hidden = n > 0;
  for (const head of byId("heads").children) {
    const way = state.down ? "descending" : "ascending";
    head.setAttribute("aria-sort", head.dataset.column === state.sort ? way : "none");
  }
  for (const chip of byId("chips").children) {
    chip.setAttribute("aria-pressed", state.flags.has(Number(chip.dataset.place)));
  }
  byId("rows").setAttribute("aria-rowcount", n + 1);
}

/* The address keeps what was asked for, so that Back from a feature finds the list as it was. */

function remember() {
  const asked = new URLSearchParams();
  if (state.query) asked.set("q", state.query);
  if (state.sort !== "id" || state.down) asked.set("sort", state.sort + (state.down ? "-" : ""));
  if (state.flags.size) asked.set("flags", [...state.flags].join("."));
  const hash = asked.toString();
  if (hash === location.hash.slice(1)) return;
  try {
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
  } catch {
    // Safari takes only so many in half a minute; the next one will do.
  }
}

function recall() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const sort = asked.get("sort") ?? "id";
  state.query = asked.get("q") ?? "";
  state.down = sort.endsWith("-");
  state.sort = WORDS.includes(sort.replace(/-$/, "")) ? sort.replace(/-$/, "") : "id";
  const places = (asked.get("flags") ?? "").split(".").filter(Boolean).map(Number);
  state.flags = new Set(places.filter((place) => place in neuroscope.facts.flags));
  byId("query").value = state.query;
}

function sortBy(column) {
  const figures = ["score", "rate", "max", "flags", "confidence"];
  state.down = column === state.sort ? !state.down : figures.includes(column); // the largest are wanted first
  state.sort = column;
  refresh();
}

function makeChips() {
  const chips = neuroscope.facts.flags.map((flag, place) => {
    const n = neuroscope.columns.flags.filter((bits) => bits & (1 << place)).length;
    const count = element("span", { class: "count" }, whole.format(n));
    const attributes = { type: "button", class: "chip", title: flag.meaning, "data-place": place, disabled: !n && "" };
    return element("button", attributes, flag.name, " ", count);
  });
  byId("chips").replaceChildren(...chips);
}

const onButton = () => document.activeElement.matches("button");

function onKey(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "/" && !typing()) byId("query").select();
  else if (event.key === "Escape") search((byId("query").value = ""));
  else if (step && state.order.length) choose(step);
  else if (event.key === "Enter" && state.order.length && (typing() || state.chosen >= 0) && !onButton()) {
    location.href = addressOf(state.order[Math.max(0, state.chosen)]);
  } else return;
  event.preventDefault();
}

function search(query) {
  state.query = query;
  window.scrollTo(0, 0);
  refresh();
}

function start() {
  recall();
  makeChips();
  refresh();
  byId("query").addEventListener("input", (event) => search(event.target.value));
  byId("heads").addEventListener("click", (event) => {
    const head = event.target.closest("[data-column]");
    if (head) sortBy(head.dataset.column);
  });
  byId("chips").addEventListener("click", (event) => {
    const chip = event.target.closest(".chip");
    if (!chip) return;
    const place = Number(chip.dataset.place);
    if (!state.flags.delete(place)) state.flags.add(place);
    refresh();
  });
  byId("rows").addEventListener("click", (event) => {
    const link = event.target.closest(".row")?.querySelector("a");
    if (link && !event.target.closest("a") && !String(getSelection())) link.click();
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  window.addEventListener("resize", () => {
    measure();
    redraw();
  });
  window.addEventListener("hashchange", () => {
    recall();
    refresh();
  });
}

start();
