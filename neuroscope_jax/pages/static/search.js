"use strict";
/* Finding features by number and words. */

let folded = null; // labels in lower case, made once

function foldedLabels() {
  folded ??= neuroscope.columns.label.map((label, row) => {
    return (label ?? `feature_${neuroscope.columns.id[row]}`).toLowerCase();
  });
  return folded;
}

/** Rows whose number begins with, or whose label holds, every word of the query; the feature of that number first. */
function matching(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const labels = foldedLabels();
  const ids = neuroscope.columns.id;
  if (!words.length) return ids.map((_, row) => row);
  const holds = (row) => words.every((word) => labels[row].includes(word) || String(ids[row]).startsWith(word));
  const found = ids.map((_, row) => row).filter(holds);
  const named = numbered(query);
  return named === null ? found : [named, ...found.filter((row) => row !== named)];
}

/** The row of the feature that a query names by its number alone, as 4521, #4521 or feature_4521; null for none. */
function numbered(query) {
  const named = /^\s*(?:#|feature_)?(\d{1,9})\s*$/.exec(query);
  return (named && neuroscope.rows.get(Number(named[1]))) ?? null;
}
