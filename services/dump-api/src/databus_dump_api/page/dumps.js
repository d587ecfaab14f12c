// Dumps: their progress, who reads them, and their files.

import { actionButton } from "./actions.js";
import { element, fillTable, setHidden, setText } from "./elements.js";
import { fileList } from "./files.js";
import { send } from "./session.js";
import { bytes, count, duration } from "./units.js";

const body = document.getElementById("dumps");

/** Show the dumps; null: they are not known. */
export function showDumps(dumps) {
  if (!dumps) return;
  // A dump has two rows: its own, and below it the one of its files.
  const shown = dumps.flatMap((dump) => [{ ...dump, key: dump.id }, { ...dump, key: `${dump.id} files` }]);
  fillTable(body, shown, ({ key }) => key, ({ id, key }) => (key === id ? row(id) : filesRow(id)));
}

function row(id) {
  const bar = element("progress", { "aria-label": `Progress of ${id}`, max: 1 });
  const left = element("span", { class: "help" });
  const state = element("td", { class: "text" });
  const [tables, rows, size, leases] = Array.from({ length: 4 }, () => element("td"));
  const cancel = actionButton("Cancel", id, () => stop(id), `Cancel the dump ${id}? Its files are removed.`);
  const open = element(
    "button",
    { type: "button", "aria-label": `Files ${id}`, "aria-expanded": "false", "aria-controls": `files-${id}`, click: toggle },
    "Files",
  );
  const cells = [state, element("td", {}, bar, left), tables, rows, size, leases, element("td", {}, cancel, open)];
  return { element: element("tr", {}, element("th", { scope: "row" }, id), ...cells), update };

  function update(dump) {
    const { rows: done, bytes: written } = dump.progress ?? dump;
    setText(state, stateOf(dump));
    bar.value = dump.state === "complete" ? 1 : dump.progress ? done / Math.max(dump.progress.estimated_rows, 1) : 0;
    setText(left, dump.progress?.eta_seconds != null ? `${duration(dump.progress.eta_seconds)} left` : "");
    setText(tables, count(dump.tables));
    setText(rows, count(done));
    setText(size, bytes(written));
    setText(leases, count(dump.leases));
    setHidden(cancel, !["pending", "running"].includes(dump.state));
    setHidden(open, dump.state !== "complete");
  }

  function toggle() {
    const files = document.getElementById(`files-${id}`);
    files.hidden = !files.hidden;
    open.ariaExpanded = String(!files.hidden);
    if (!files.hidden) files.dispatchEvent(new Event("open"));
  }
}

function filesRow(id) {
  const cell = element("td", { colspan: 8 });
  const fill = async () => cell.replaceChildren(await fileList(id));
  return { element: element("tr", { id: `files-${id}`, hidden: true, open: fill }, cell), update: () => {} };
}

function stateOf({ state, schedule, mode, error }) {
  const notes = [mode === "chunked" && "chunked", schedule && `by ${schedule}`].filter(Boolean);
  const shown = notes.length ? `${state} (${notes.join(", ")})` : state;
  return error ? `${shown}: ${error}` : shown;
}

async function stop(id) {
  await send("POST", `v1/dumps/${id}/cancel`);
  return `Dump ${id} is cancelled.`;
}
