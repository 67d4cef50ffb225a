"use strict";
/* The histogram of a feature's activations: bars half an octave wide on a logarithmic axis, drawn as SVG. */

const PLOT = { width: 560, height: 200, left: 48, right: 12, top: 10, bottom: 26 };

function drawn(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Edges are powers of two and of its root: 8, but 11.3.
const edgeWords = (edge) => String(Number(edge.toPrecision(3)));

/** From where to where bin `i` counts; the outermost ones have only one edge. */
function binWords(i, edges) {
  if (i === 0) return `below ${edgeWords(edges[0])}`;
  if (i === edges.length) return `${edgeWords(edges[i - 1])} or more`;
  return `${edgeWords(edges[i - 1])} to ${edgeWords(edges[i])}`;
}

function histogram(counts, mean) {
  const edges = neuroscope.facts.edges;
  const first = Math.max(0, counts.findIndex((n) => n > 0) - 1);
  const last = Math.min(counts.length - 1, counts.findLastIndex((n) => n > 0) + 1);
  const most = Math.max(...counts);
  const wide = (PLOT.width - PLOT.left - PLOT.right) / (last - first + 1);
  const x = (bin) => PLOT.left + (bin - first) * wide;
  const y = (n) => PLOT.height - PLOT.bottom - (n / most) * (PLOT.height - PLOT.top - PLOT.bottom);
  const parts = [...axisY(most, y), ...axisX(first, last, edges, x)];
  for (let i = first; i <= last; i++) {
    if (!counts[i]) continue;
    const size = { x: x(i) + 1, width: Math.max(wide - 2, 1), y: Math.min(y(counts[i]), y(0) - 1) };
    const title = drawn("title", {}, `${binWords(i, edges)}: ${plural(counts[i], "token")}`);
    parts.push(drawn("rect", { class: "count", ...size, height: y(0) - size.y }, title));
  }
  // Bin i ends at edge i, so a value lies log2 of its ratio to the first edge, in half octaves, beyond bin 1's start.
  const at = x(Math.min(Math.max(1 + 2 * Math.log2(mean / edges[0]), first), last + 1));
  const place = { x1: at, x2: at, y1: PLOT.top, y2: y(0) };
  parts.push(drawn("line", { class: "mean", ...place }, drawn("title", {}, `mean ${figure(mean)}`)));
  const words = `Histogram of ${plural(counts.reduce((a, b) => a + b), "activation")} above zero, logarithmic axis`;
  return drawn("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: "img", "aria-label": words }, ...parts);
}

function axisY(most, y) {
  return [0, most].map((n) => {
    const text = drawn("text", { x: PLOT.left - 6, y: y(n) + 4, "text-anchor": "end" }, whole.format(n));
    const line = drawn("line", { class: "grid", x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: y(n), y2: y(n) });
    return drawn("g", {}, line, text);
  });
}

/** A tick at whole powers of two; every second or fourth of them where there are many. */
function axisX(first, last, edges, x) {
  const step = last - first > 16 ? 4 : 2;
  const ticks = [];
  for (let i = Math.max(first, 1); i <= last + 1; i++) {
    if ((i - 1) % step || i > edges.length) continue;
    const words = { x: x(i), y: PLOT.height - 6, "text-anchor": "middle" };
    const end = PLOT.height - PLOT.bottom;
    ticks.push(drawn("line", { class: "tick", x1: x(i), x2: x(i), y1: end, y2: end + 4 }));
    ticks.push(drawn("text", words, edgeWords(edges[i - 1])));
  }
  return ticks;
}
