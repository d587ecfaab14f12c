// Freshness of each stage, and what waits between the stages.

import { chartCard } from "./chart.js";
import { keep } from "./elements.js";
import { bytes, duration } from "./units.js";

const charts = document.getElementById("charts");

/** Add the values of a state to the charts. */
export function showFreshness(status) {
  const time = Date.parse(status.time);
  const stages = Object.entries(status.freshness ?? {});
  keep(
    charts,
    [
      ...stages.map(([stage, value]) => ({ name: `${stage}, age of its data`, write: duration, time, value })),
      { name: "waits in Redis", write: bytes, time, value: status.stream?.backlog_bytes },
      { name: "binlog that is not published", write: bytes, time, value: status.lag?.bytes },
    ],
    ({ name }) => name,
    ({ name, write }) => chartCard(name, write),
  );
}
