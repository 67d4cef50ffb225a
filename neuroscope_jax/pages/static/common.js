"use strict";
/* What both pages share: the data as the scripts in data/ hand it over, elements, and words for figures.

   Labels and texts come from anywhere. They reach the page as text nodes only, never as markup. */

const neuroscope = {
  facts: null, // of the whole report
  columns: null, // of the index, one entry a feature
  shards: new Map(), // number of a shard to its content
  rows: new Map(), // feature to its row of the index
  report(facts) {
    this.facts = facts;
  },
  index(columns) {
    this.columns = columns;
    columns.id.forEach((id, row) => this.rows.set(id, row));
  },
  shard(number, content) {
    this.shards.set(number, content);
  },
};

/** An element; strings among its children become text. */
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** A part of the page with its heading; null where it has nothing to show. */
function section(title, note, ...content) {
  const held = content.flat().filter(Boolean);
  if (!held.length) return null;
  const heading = element("h2", {}, title, note?.length ? element("small", {}, ...[note].flat()) : null);
  return element("section", {}, heading, ...held);
}

const byId = (id) => document.getElementById(id);

// Control and formatting characters, among them those that turn the reading direction around; not the joiners, nor the
// Arabic signs that are drawn.
const UNSEEN = /(?![\u0600-\u0605\u06dd\u070f\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const SIGNS = new Map([["\n", "↵"], ["\t", "⇥"], ["\r", "␍"]]);

/** The text with a sign, or its code, for every character that is not drawn. */
function readable(text) {
  return text.replace(UNSEEN, (c) => {
    return SIGNS.get(c) ?? `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

const three = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

const digits = (value) => (value === 0 ? "0" : value >= 1000 ? whole.format(value) : three.format(value));
const figure = (value) => (value === null ? "–" : digits(value));
const share = (value) => (value === null ? "–" : value.toFixed(2));
const percent = (value) => (value === null ? "–" : `${digits(100 * value)} %`);
const plural = (n, word) => `${whole.format(n)} ${word}${n === 1 ? "" : "s"}`;

/** The names of a row's flags; its number has one bit a flag. */
const flagsOf = (bits) => neuroscope.facts.flags.filter((_, place) => bits & (1 << place));

function badges(bits) {
  return flagsOf(bits).map((flag) => {
    return element("span", { class: `badge ${flag.name.replaceAll(" ", "-")}`, title: flag.meaning }, flag.name);
  });
}

/** A row's label, or feature_4521 in a paler shade where it has none. */
function labelOf(row) {
  const label = neuroscope.columns.label[row];
  if (label !== null) return element("span", { class: "label", title: readable(label) }, readable(label));
  return element("span", { class: "label none" }, `feature_${neuroscope.columns.id[row]}`);
}

const addressOf = (row) => `feature.html#${neuroscope.columns.id[row]}`;

/** True while a person is typing, when single keys are not commands. */
function typing() {
  const at = document.activeElement;
  return at !== null && (at.matches("input, select, textarea") || at.isContentEditable);
}
