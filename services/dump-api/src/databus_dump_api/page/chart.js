// Charts of the last five minutes.

import { drawn, element, setText } from "./elements.js";

const MILLISECONDS = 300_000;
const WIDTH = 300;
const HEIGHT = 60;

/** Make a card with a value and its chart; `write` writes a value for people. It is an item of `elements.keep`. */
export function chartCard(name, write) {
  const points = [];
  const now = element("p", { class: "value" });
  const highest = element("p", { class: "help" });
  const area = drawn("path", { class: "area" });
  const line = drawn("path", { class: "line" });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": name };
  const chart = drawn("svg", box, area, line);
  return { element: element("li", {}, element("h3", {}, name), now, chart, highest), update };

  function update({ time, value }) {
    points.push({ time, value });
    while (points[0].time < time - MILLISECONDS) points.shift();
    const runs = known(points);
    const top = runs.length ? Math.max(...runs.flat().map((point) => point.value)) : null;
    const texts = { now: write(value), highest: `highest ${write(top)}` };
    setText(now, texts.now);
    setText(highest, texts.highest);
    chart.setAttribute("aria-label", `${name}, last five minutes: now ${texts.now}, ${texts.highest}`);
    const places = runs.map((run) => run.map((point) => place(point, time, top)));
    line.setAttribute("d", places.map((run) => `M${run.join("L")}`).join(""));
    area.setAttribute("d", places.map(closed).join(""));
  }
}

/** Split points into runs whose values are known: a chart has gaps where nothing is known. */
function known(points) {
  const runs = [[]];
  for (const point of points) {
    if (point.value != null) runs.at(-1).push(point);
    else if (runs.at(-1).length) runs.push([]);
  }
  return runs.filter((run) => run.length);
}

function place(point, time, top) {
  const x = WIDTH - ((time - point.time) / MILLISECONDS) * WIDTH;
  const y = HEIGHT - 1 - (top ? point.value / top : 0) * (HEIGHT - 2);
  return [x.toFixed(1), y.toFixed(1)];
}

function closed(run) {
  return `M${run[0][0]} ${HEIGHT}L${run.join("L")}L${run.at(-1)[0]} ${HEIGHT}Z`;
}
