// Buttons that change something: they ask first, and report what came of it.

import { element } from "./elements.js";
import { report, reportFault } from "./notices.js";

const dialog = document.getElementById("confirm");
const question = document.getElementById("question");
const confirmed = document.getElementById("confirmed");

/** Make a button. `about` names what it is for; `run` returns what to report; `ask`, if given, is asked before. */
export function actionButton(text, about, run, ask = null) {
  return element("button", { type: "button", "aria-label": `${text} ${about}`, click: act }, text);

  async function act({ currentTarget: button }) {
    if (button.ariaBusy === "true" || (ask && !(await agreed(ask, text)))) return;
    button.ariaBusy = "true";
    try {
      report(await run());
    } catch (error) {
      reportFault(`${text} ${about}: ${error.message || "the API key is refused"}`);
    } finally {
      button.ariaBusy = null;
    }
  }
}

function agreed(ask, text) {
  question.textContent = ask;
  confirmed.textContent = text;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
