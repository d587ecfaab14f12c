// Position and processes of the pipeline.

import { element, keep, setText } from "./elements.js";
import { bytes, count, time } from "./units.js";

const list = document.getElementById("facts");

/** Show the position and the processes. */
export function showFacts(status) {
  const shown = Object.entries(facts(status)).filter(([, text]) => text);
  keep(list, shown, ([name]) => name, ([name]) => {
    const value = element("dd");
    return { element: element("div", {}, element("dt", {}, name), value), update: ([, text]) => setText(value, text) };
  });
}

function facts({ progress, source, leaders, stream, skips, dead_letters: letters }) {
  return {
    Position: progress?.file && `${progress.file}:${progress.offset}`,
    "GTID set": progress?.gtid_set,
    "Begins at": progress?.begins_at,
    "Last transaction": progress && `${count(progress.transaction)}${progress.time ? `, ${time(progress.time)}` : ""}`,
    "Database host": source?.host,
    "Active reader": leaders && (leaders.reader ?? "nobody"),
    "Active publisher": leaders && (leaders.publisher ?? "nobody"),
    Backlog: stream?.backlog_bytes != null && `${bytes(stream.backlog_bytes)} of ${bytes(stream.limit_bytes)}`,
    "Will be skipped": skips?.transactions,
    "Dead letters": letters && (letters.count ? `${count(letters.count)} since ${letters.oldest}: ${letters.tables}` : "none"),
  };
}
