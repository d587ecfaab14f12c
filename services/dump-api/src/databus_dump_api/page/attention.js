// What an operator has to look at, in words.

import { element, keep, setText } from "./elements.js";
import { bytes } from "./units.js";

const list = document.getElementById("attention");
// share of the backlog's limit from which on it is reported
const BACKLOG = 0.8;

/** List what needs attention. Screen readers announce what is new in the list. */
export function showAttention(overview) {
  const found = [...reasons(overview)];
  const shown = found.length ? found : [{ key: "none", text: "Nothing needs attention." }];
  keep(list, shown, ({ key }) => key, ({ key }) => {
    const made = element("li", { class: key === "none" ? "good" : "bad" });
    return { element: made, update: ({ text }) => setText(made, text) };
  });
}

function* reasons({ status, dumps, dumps_error: error }) {
  yield* unread(status.errors);
  for (const [role, holder] of Object.entries(status.leaders ?? {})) {
    if (!holder) yield { key: role, text: `No ${role} is active.` };
  }
  const { backlog_bytes: backlog, limit_bytes: limit } = status.stream ?? {};
  if (backlog > BACKLOG * limit) {
    yield { key: "backlog", text: `${bytes(backlog)} wait in Redis; at ${bytes(limit)} the reader waits.` };
  }
  for (const { schema, table, state } of status.tables_in_doubt ?? []) {
    yield { key: `${schema}.${table}`, text: `Table ${schema}.${table} is ${state}.` };
  }
  if (status.dead_letters?.count) {
    yield { key: "letters", text: `Dead letters: ${status.dead_letters.tables}.` };
  }
  if (error) yield { key: "dumps", text: `Dumps cannot be read: ${error}` };
  if (dumps?.[0]?.state === "failed") yield { key: "dump", text: `The newest dump has failed: ${dumps[0].error}` };
}

/** Report each error once: without Kafka, most sections have the same. */
function* unread(errors) {
  const sections = new Map();
  for (const [section, text] of Object.entries(errors).sort()) {
    sections.set(text, [...(sections.get(text) ?? []), section.replaceAll("_", " ")]);
  }
  for (const [text, names] of sections) yield { key: text, text: `${names.join(", ")} cannot be read: ${text}` };
}
