// The operations page: follows the events of the pipeline, and shows each.

import { showAttention } from "./attention.js";
import { showBackfills } from "./backfills.js";
import { showDumps } from "./dumps.js";
import { setText } from "./elements.js";
import { follow } from "./events.js";
import { showFacts } from "./facts.js";
import { showFreshness } from "./freshness.js";
import { login } from "./login.js";
import { report, reportFault } from "./notices.js";
import { KeyRefused, key } from "./session.js";
import { showTables } from "./tables.js";
import { time } from "./units.js";

/** Without an event for so long, the connection counts as lost: the API sends one at least every 15 s. */
const SILENCE = 30_000;
const LONGEST_PAUSE = 15_000;

const operations = document.getElementById("operations");
const connection = document.getElementById("connection");
const title = document.getElementById("title");
const logout = document.getElementById("logout");
let lost = false;

logout.addEventListener("click", () => {
  key.forget();
  location.reload();
});

run();

async function run() {
  for (let pause = 1000; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    try {
      for await (const overview of events()) {
        show(overview);
        pause = 1000;
      }
      lose("the connection was closed");
    } catch (error) {
      if (error instanceof KeyRefused) {
        operations.hidden = logout.hidden = true;
        setText(connection, "not logged in");
        await login();
        pause = 500;
        continue;
      }
      lose(error.message);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function* events() {
  const silence = new AbortController();
  const begin = () => setTimeout(() => silence.abort(new Error("no answer")), SILENCE);
  let timer = begin();
  try {
    for await (const overview of follow("v1/pipeline/events", silence.signal)) {
      clearTimeout(timer);
      timer = begin();
      yield overview;
    }
  } finally {
    clearTimeout(timer);
  }
}

function show(overview) {
  const { status, dumps } = overview;
  if (lost) report("Connected again.");
  lost = false;
  document.title = `${status.pipeline} – Databus`;
  setText(title, `Databus: ${status.pipeline}`);
  setText(connection, `live, ${time(status.time)}`);
  showAttention(overview);
  showFreshness(status);
  showFacts(status);
  showTables(status.tables_in_doubt);
  showBackfills(status);
  showDumps(dumps);
  operations.hidden = false;
  logout.hidden = key.get() === null;
}

function lose(reason) {
  setText(connection, `not connected since ${time(new Date().toISOString())}`);
  if (!lost) reportFault(`What is shown is not up to date: ${reason}`);
  lost = true;
}
