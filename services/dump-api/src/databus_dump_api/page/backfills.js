// Backfills: those that have not ended, then the latest that have.

import { actionButton } from "./actions.js";
import { element, fillTable, setHidden, setText } from "./elements.js";
import { send } from "./session.js";
import { count, duration, time } from "./units.js";

const body = document.getElementById("backfills");
const FINAL = ["done", "cancelled", "failed"];
const PENDING = { pause: "pausing", cancel: "cancelling" };

/** Show the backfills of a state, the newest first. */
export function showBackfills({ backfills, ended_backfills: ended }) {
  if (backfills && ended) fillTable(body, [...backfills.toReversed(), ...ended], ({ id }) => id, row);
}

function row({ id, schema, table }) {
  const name = `${schema}.${table}`;
  const bar = element("progress", { "aria-label": `Progress of ${name}` });
  const state = element("td", { class: "text" });
  const [rows, speed, left, requested] = Array.from({ length: 4 }, () => element("td"));
  const change = (text, wanted, ask) => actionButton(text, name, () => want(id, name, wanted), ask);
  const pause = change("Pause", "pause");
  const resume = change("Resume", "run");
  const cancel = change("Cancel", "cancel", `Cancel the backfill of ${name}? This is final.`);
  const cells = [element("th", { scope: "row" }, name), state, element("td", {}, bar), rows, speed, left, requested];
  return { element: element("tr", {}, ...cells, element("td", {}, pause, resume, cancel)), update };

  function update(backfill) {
    const final = FINAL.includes(backfill.state);
    setText(state, stateOf(backfill, final));
    bar.max = Math.max(backfill.estimate, backfill.rows, 1);
    bar.value = backfill.state === "done" ? bar.max : backfill.rows;
    setText(rows, `${count(backfill.rows)} of about ${count(Math.max(backfill.estimate, backfill.rows))}`);
    setText(speed, backfill.rows_per_second ? count(Math.round(backfill.rows_per_second)) : "");
    setText(left, backfill.seconds_left ? duration(backfill.seconds_left) : "");
    setText(requested, time(backfill.requested));
    setHidden(pause, final || backfill.wanted !== "run");
    setHidden(resume, final || backfill.wanted !== "pause");
    setHidden(cancel, final || backfill.wanted === "cancel");
  }
}

function stateOf({ state, wanted, error }, final) {
  if (error) return `${state}: ${error}`;
  return final || !PENDING[wanted] || state === "paused" ? state : `${state} (${PENDING[wanted]})`;
}

async function want(id, name, wanted) {
  await send("PUT", `v1/backfills/${id}`, { wanted });
  return `The reader is asked to ${wanted} the backfill of ${name}.`;
}
