"use strict";
/* Examples in their contexts, shaded by activation, which is told on hover, on focus and on a touch.

   `tokens` are places in the shard's table of texts, `shades` pairs of a place in the example and its activation. */

const WEAKEST = 0.12; // opacity of an activation just above zero, so that it can be seen at all
const STROKE = "│"; // where the sample has an end

/** What the shades of the examples mean. */
function scale(feature) {
  const ends = `${STROKE} the sample ends here`;
  if (!neuroscope.facts.shaded) return `only the token that fires is shaded; ${ends}`;
  return ["shaded from 0", element("i", { class: "scale" }), `${figure(feature.max)}; ${ends}`];
}

function examples(title, note, feature, kind, texts) {
  const chosen = feature.examples.filter((example) => example.kind === kind);
  const cards = chosen.map((example) => exampleElement(example, feature, texts));
  return section(title, note, cards.length ? element("ol", { class: "examples" }, ...cards) : null);
}

const strongerThan = (quantile) => `stronger than ${Math.round(100 * quantile)} % of its firings`;

function exampleElement(example, feature, texts) {
  const weaker = example.quantile === null ? null : strongerThan(example.quantile);
  const place = `doc ${example.document}, sample ${example.sample}, token ${example.offset}`;
  const side = [
    element("strong", {}, figure(example.activation)),
    weaker && example.kind === "random" ? element("small", {}, weaker) : null,
  ];
  return element(
    "li",
    {},
    element("div", { class: "strength" }, ...side),
    element("p", { class: "context", dir: "auto" }, ...contextOf(example, feature.max, texts)),
    element("small", { class: "place" }, place),
  );
}

function contextOf(example, most, texts) {
  const shades = new Map();
  for (let i = 0; i < example.shades.length; i += 2) shades.set(example.shades[i], example.shades[i + 1]);
  const tokens = example.tokens.map((text, place) => {
    return tokenElement(texts[text], shades.get(place) ?? 0, most, place === example.at);
  });
  return [edge(example.cut[0], "begins"), ...tokens, edge(example.cut[1], "ends")];
}

/** The end of what is shown: a stroke where the sample has one, dots where it goes on. */
function edge(cut, what) {
  const title = cut ? `the sample ${what} here` : "the sample goes on";
  return element("span", { class: cut ? "edge cut" : "edge", title }, cut ? STROKE : "…");
}

function tokenElement(text, activation, most, fires) {
  if (!activation && !fires) return element("span", {}, readable(text));
  const attributes = { class: fires ? "token fires" : "token", "data-activation": activation, tabindex: fires && "0" };
  const node = element("span", attributes, readable(text));
  if (activation > 0) node.style.setProperty("--heat", shade(activation, most));
  return node;
}

const shade = (activation, most) => WEAKEST + (1 - WEAKEST) * Math.min(1, activation / most);

function explain(event) {
  const token = event.target.closest?.("[data-activation]");
  const tip = byId("tip");
  tip.hidden = !token;
  if (!token) return;
  const activation = Number(token.dataset.activation);
  tip.textContent = `${figure(activation)}  “${token.textContent}”`;
  const at = token.getBoundingClientRect();
  const left = Math.min(at.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
  const above = at.top - tip.offsetHeight - 6;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${above > 0 ? above : at.bottom + 6}px`;
}
