"use strict";
/* The list of the index, of which only the rows in view are in the document. */

const SPARE = 12; // rows drawn beyond each edge of the view
const TALLEST = 8e6; // pixels of the list; browsers draw nothing beyond some 17 million

let height = 32; // of a row, in pixels

function measure() {
  const list = byId("rows");
  if (!state.order.length) return list.style.setProperty("height", "0");
  const probe = rowElement(0);
  list.append(probe);
  height = probe.getBoundingClientRect().height || height;
  probe.remove();
  const shown = Math.min(state.order.length, Math.floor(TALLEST / height));
  byId("more").hidden = shown === state.order.length;
  list.style.setProperty("height", `${shown * height}px`);
}

const drawn = new Map(); // place in the order → its row in the document

/** Put the rows that came into view into the document, and take out those that left it. */
function draw() {
  const list = byId("rows");
  const top = -list.getBoundingClientRect().top;
  const first = Math.max(0, Math.floor(top / height) - SPARE);
  const last = Math.min(state.order.length, Math.ceil((top + window.innerHeight) / height) + SPARE);
  for (const [place, row] of drawn) {
    if (place >= first && place < last) continue;
    row.remove();
    drawn.delete(place);
  }
  const [above, below] = [[], []];
  const lowest = drawn.size ? Math.min(...drawn.keys()) : 0;
  for (let place = first; place < last; place++) {
    if (drawn.has(place)) continue;
    const row = rowElement(place);
    row.style.setProperty("top", `${place * height}px`);
    drawn.set(place, row);
    (place < lowest ? above : below).push(row);
  }
  list.prepend(...above);
  list.append(...below);
}

function redraw() {
  drawn.clear();
  byId("rows").replaceChildren();
  draw();
}

function rowElement(place) {
  const row = state.order[place];
  const columns = neuroscope.columns;
  const score = columns.score[row];
  const link = element("a", { href: addressOf(row), tabindex: "-1" }, String(columns.id[row]));
  const cell = (name, ...content) => element("span", { class: name, role: "cell" }, ...content);
  const bar = score === null ? null : element("i", { class: "bar", title: "empty at 0.5, which is chance; full at 1" });
  bar?.style.setProperty("--share", Math.max(0, 2 * score - 1)); // 0.5 is chance
  return element(
    "div",
    { class: place === state.chosen ? "row chosen" : "row", role: "row", "aria-rowindex": place + 2 },
    cell("id", link),
    cell("name", labelOf(row)),
    cell("source", columns.source[row] ?? ""),
    cell("confidence", columns.confidence[row] ?? ""),
    cell("score", score === null ? "" : share(score), bar),
    cell("rate", percent(columns.rate[row])),
    cell("max", figure(columns.max[row])),
    cell("flags", badges(columns.flags[row])),
  );
}

function choose(step) {
  const last = Math.min(state.order.length, Math.floor(TALLEST / height)) - 1;
  drawn.get(state.chosen)?.classList.remove("chosen");
  state.chosen = Math.max(0, Math.min(last, state.chosen + step));
  const top = byId("rows").getBoundingClientRect().top + state.chosen * height;
  const least = byId("bar").getBoundingClientRect().bottom;
  if (top < least) window.scrollBy(0, top - least);
  if (top + height > window.innerHeight) window.scrollBy(0, top + height - window.innerHeight);
  draw();
  drawn.get(state.chosen)?.classList.add("chosen");
}
