// Tables in doubt, and the button that heals one.

import { actionButton } from "./actions.js";
import { element, fillTable, setHidden, setText } from "./elements.js";
import { send } from "./session.js";
import { time } from "./units.js";

const body = document.getElementById("tables");

/** Show the tables; null: they are not known. */
export function showTables(tables) {
  if (tables) fillTable(body, tables, nameOf, row);
}

const nameOf = ({ schema, table }) => `${schema}.${table}`;

function row(item) {
  const name = nameOf(item);
  const [state, since, healing] = ["td", "td", "span"].map((kind) => element(kind));
  const reason = element("td", { class: "text" });
  const heal = actionButton("Heal", name, () => load(name), `Empty ${name} for its consumers, and load it again?`);
  const cells = [element("th", { scope: "row" }, name), state, since, reason, element("td", {}, heal, healing)];
  return { element: element("tr", {}, ...cells), update };

  function update(table) {
    setText(state, table.state);
    setText(since, time(table.since));
    setText(reason, table.text);
    setText(healing, table.backfill ? `backfill ${table.backfill}` : "");
    setHidden(heal, Boolean(table.backfill));
  }
}

async function load(name) {
  await send("POST", "v1/backfills", { tables: [name], clean: true });
  return `A backfill of ${name} is requested.`;
}
