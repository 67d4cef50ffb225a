"use strict";
/* The order of the index. */

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

// How the columns compare; null is last whichever way they are sorted.
const WORDS = ["id", "label", "source", "confidence", "score", "rate", "max", "flags"];
const CONFIDENCES = ["low", "medium", "high"];
const keyOf = {
  label: (row) => neuroscope.columns.label[row],
  source: (row) => neuroscope.columns.source[row],
  confidence: (row) => nullable(CONFIDENCES.indexOf(neuroscope.columns.confidence[row])),
  flags: (row) => flagsOf(neuroscope.columns.flags[row]).length || null,
};
const nullable = (place) => (place < 0 ? null : place);

function compared(a, b) {
  if (a === null || b === null) return 0;
  return typeof a === "string" ? collator.compare(a, b) : a - b;
}

function sorted(rows) {
  if (state.sort === "id" && !state.down) return rows;
  const key = keyOf[state.sort] ?? ((row) => neuroscope.columns[state.sort][row]);
  const keys = new Map(rows.map((row) => [row, key(row)]));
  const direction = state.down ? -1 : 1;
  return rows.sort((a, b) => {
    const nulls = (keys.get(a) === null) - (keys.get(b) === null);
    return nulls || direction * compared(keys.get(a), keys.get(b)) || a - b;
  });
}
