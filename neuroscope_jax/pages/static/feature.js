"use strict";
/* One feature. Its data comes with the shard that holds it, loaded when it is first asked for. */

let shown = null; // row of the feature on the page

function shardOf(row) {
  return Math.floor(row / neuroscope.facts.per_shard);
}

/** Load a shard's script; the promise holds its content. */
function load(number) {
  if (neuroscope.shards.has(number)) return Promise.resolve(neuroscope.shards.get(number));
  const name = `data/${String(number).padStart(5, "0")}.js`;
  return new Promise((resolve, reject) => {
    const failed = () => reject(new Error(`${name} cannot be loaded; is the report's folder complete?`));
    const script = element("script", { src: `${name}?${neuroscope.facts.stamp}` });
    script.onload = () => (neuroscope.shards.has(number) ? resolve(neuroscope.shards.get(number)) : failed());
    script.onerror = failed;
    document.head.append(script);
  });
}

/** The row that the address names; the first where it names none, null where there is no such feature. */
function rowAsked() {
  const asked = location.hash.slice(1);
  return asked === "" ? 0 : numbered(asked);
}

async function show() {
  const row = rowAsked();
  shown = row;
  if (row === null) return complain(`There is no feature ${location.hash.slice(1)} in this report.`);
  const id = neuroscope.columns.id[row];
  document.title = `${id} ${neuroscope.columns.label[row] ?? ""} – features`;
  linkNeighbours(row);
  try {
    const shard = await load(shardOf(row));
    if (row !== shown) return; // another one was asked for meanwhile
    render(row, shard.features[row - shardOf(row) * neuroscope.facts.per_shard], shard.texts);
  } catch (error) {
    complain(error.message);
  }
}

function complain(words) {
  byId("feature").replaceChildren(element("p", { class: "complaint" }, readable(words)));
}

function linkNeighbours(row) {
  for (const [name, to] of [["previous", row - 1], ["next", row + 1]]) {
    const there = to >= 0 && to < neuroscope.columns.id.length;
    byId(name).toggleAttribute("aria-disabled", !there);
    byId(name).title = there ? `#${neuroscope.columns.id[to]} ${readable(neuroscope.columns.label[to] ?? "")}` : "";
    if (there) byId(name).href = addressOf(to);
    else byId(name).removeAttribute("href");
  }
}

function render(row, feature, texts) {
  const parts = [
    heading(row, feature),
    statistics(feature),
    element("div", { class: "beside" }, plot(feature), score(feature.label?.score), logits(feature.logits)),
    examples("Strongest activations", scale(feature), feature, "top", texts),
    examples("Activations of all strengths", "drawn at random", feature, "random", texts),
    wrong(feature.label?.score),
    origin(feature.label),
  ];
  byId("feature").replaceChildren(...parts.filter(Boolean));
  window.scrollTo(0, 0);
}

function plot(feature) {
  if (!feature.count) return null;
  const drawing = element("figure", { class: "plot" }, histogram(feature.histogram, feature.mean));
  return section("Activations", "tokens by activation; the line is the mean", drawing);
}

function heading(row, feature) {
  const { id, label, confidence, flags } = Object.fromEntries(
    Object.entries(neuroscope.columns).map(([name, column]) => [name, column[row]]),
  );
  const { source, label: detail } = feature;
  const sure = `${confidence} confidence (labeler's own)`;
  const marks = [
    source && element("span", { class: "badge source" }, readable(source)),
    confidence && element("span", { class: `badge confidence-${confidence}` }, sure),
    ...badges(flags),
  ];
  const page = neuroscope.facts.neuronpedia;
  const link = page && { class: "outside", href: `${page}${id}`, rel: "noreferrer" };
  return element(
    "header",
    { class: "feature-head" },
    element("h1", {}, element("span", { class: "number" }, `#${id}`), " ", labelOf(row)),
    element("div", { class: "badges" }, ...marks.filter(Boolean), link ? element("a", link, "Neuronpedia ↗") : null),
    label !== null && detail?.pattern ? element("p", { class: "pattern" }, readable(detail.pattern)) : null,
    ...whyNone(label, detail),
  );
}

/** Why a feature is shown by its number. */
function whyNone(label, detail) {
  if (label !== null || !detail) return [];
  const why = detail.replaced ? dropped(detail) : detail.reason && `No label: ${detail.reason}`;
  return why ? [element("p", { class: "pattern" }, readable(why))] : [];
}

/** What became of a label that was taken out of the labels file. */
function dropped(detail) {
  const accuracy = detail.score?.balanced_accuracy ?? null;
  const scored = accuracy === null ? "" : ` (score ${share(accuracy)}, below ${share(neuroscope.facts.low)})`;
  return `Label dropped${scored}: '${detail.label}'`;
}

function statistics(feature) {
  const tokens = neuroscope.facts.tokens;
  const rate = feature.count / tokens;
  const often = feature.count ? `1 in ${figure(1 / rate)}` : "never";
  const tiles = [
    ["firings", whole.format(feature.count), `of ${plural(tokens, "token")}`],
    ["firing rate", percent(rate), often],
    ["mean", figure(feature.mean), "where it fires"],
    ["deviation", figure(feature.deviation), "standard, where it fires"],
    ["maximum", figure(feature.max), ""],
  ];
  const tile = ([name, value, note]) => {
    const below = note ? element("small", {}, note) : null;
    return element("div", {}, element("dt", {}, name), element("dd", {}, value, below));
  };
  return element("dl", { class: "tiles" }, ...tiles.map(tile));
}

function logits(found) {
  if (!found) return null;
  const list = (title, rows) => {
    const items = rows.map(([token, value]) => {
      return element("tr", {}, element("td", { class: "token" }, readable(token)), element("td", {}, value.toFixed(2)));
    });
    return element("table", { class: "logits" }, element("caption", {}, title), element("tbody", {}, ...items));
  };
  const both = element("div", { class: "columns" }, list("more likely", found.top), list("less likely", found.bottom));
  return section("Tokens this feature makes more or less likely next", "by its decoder row alone", both);
}

/** Where the label comes from. */
function origin(detail) {
  const facts = neuroscope.facts.origin;
  const rows = detail
    ? [
        ["written by", detail.model],
        ["on", detail.date],
        ["prompt, sha256", detail.prompt_sha256],
        ["method", detail.type_name],
        ["other labels", detail.alternatives || null],
        ["scored by", detail.score?.judge],
      ]
    : [];
  const all = [...rows.filter(([, value]) => value), ...facts];
  const pairs = all.flatMap(([name, value]) => {
    return [element("dt", {}, name), element("dd", {}, readable(String(value)))];
  });
  return section("Where this comes from", "", element("dl", { class: "facts" }, ...pairs));
}

function onKey(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const inSearch = document.activeElement === byId("query");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const neighbour = { ArrowLeft: "previous", ArrowRight: "next" }[event.key];
  if (event.key === "Escape") closeSearch();
  else if (inSearch && step) stepSuggestion(step);
  else if (inSearch && event.key === "Enter") byId("suggestions").children[chosen]?.click();
  else if (event.key === "/" && !typing()) byId("query").select();
  else if (neighbour && !typing() && byId(neighbour).href) byId(neighbour).click();
  else return;
  event.preventDefault();
}

function start() {
  byId("query").addEventListener("input", suggest);
  document.addEventListener("keydown", onKey);
  for (const kind of ["pointerover", "focusin", "click"]) document.addEventListener(kind, explain);
  document.addEventListener("scroll", () => (byId("tip").hidden = true), { passive: true });
  window.addEventListener("hashchange", () => {
    closeSearch();
    show();
  });
  show();
}

start();
