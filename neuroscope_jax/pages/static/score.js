"use strict";
/* The score of a label: its parts, and the sequences that the judge got wrong. */

function score(found) {
  if (!found) return null;
  const asked = `judge ${found.judge}`;
  if (found.status === "insufficient") {
    const [fires, silent] = [found.n_active, found.n_silent].map((n) => whole.format(n));
    const words = `Too few texts to score the label: ${fires} where it fires, ${silent} where it does not.`;
    return section("Score", asked, element("p", {}, words));
  }
  const low = found.balanced_accuracy < neuroscope.facts.low;
  const value = element("strong", { class: low ? "big low" : "big" }, share(found.balanced_accuracy));
  const error = found.standard_error === null ? "" : ` ± ${share(found.standard_error)}`;
  const line = element("p", {}, value, `${error} balanced accuracy; 0.50 is chance`, ...comparison());
  return section("Score", asked, line, confusion(found), element("p", { class: "note" }, scoreNote(found)));
}

function comparison() {
  const { control } = neuroscope.facts;
  return control ? [`. Control: ${control}`] : [];
}

function confusion(found) {
  const row = (name, n, rate, right) => {
    const hits = Math.round(n * rate);
    const cells = right === 0 ? [hits, n - hits] : [n - hits, hits];
    const cell = (count, place) => element("td", { class: place === right ? "right" : "miss" }, whole.format(count));
    return element("tr", {}, element("th", { scope: "row" }, name), ...cells.map(cell), element("td", {}, share(rate)));
  };
  const heads = ["", "judged active", "judged silent", "recognised"];
  return element(
    "table",
    { class: "confusion" },
    element("thead", {}, element("tr", {}, ...heads.map((words) => element("th", { scope: "col" }, words)))),
    element(
      "tbody",
      {},
      row(`active (${whole.format(found.n_active)})`, found.n_active, found.tpr, 0),
      row(`silent (${whole.format(found.n_silent)})`, found.n_silent, found.tnr, 1),
    ),
  );
}

function scoreNote(found) {
  const contain = found.n_hard === 1 ? "contains" : "contain";
  const hard = `${whole.format(found.n_hard)} of the silent ${contain} the token this feature fires on most.`;
  return found.n_failed ? `${hard} ${whole.format(found.n_failed)} ${found.n_failed === 1 ? "was" : "were"} asked but not answered.` : hard;
}

function wrong(found) {
  if (!found?.wrong.length) return null;
  const item = (sequence) => {
    const verdict = sequence.was_active ? "fires, judged silent" : "silent, judged to fire";
    const mark = element("span", { class: sequence.was_active ? "badge missed" : "badge false-alarm" }, verdict);
    return element("li", {}, mark, " ", element("span", { class: "context", dir: "auto" }, readable(sequence.text)));
  };
  const ordered = [...found.wrong].sort((a, b) => b.was_active - a.was_active);
  const list = element("ul", { class: "wrong" }, ...ordered.map(item));
  return section("Judged wrong", plural(found.wrong.length, "text"), list);
}
