// What screen readers announce: results of actions, and faults.

const notice = document.getElementById("notice");
const fault = document.getElementById("fault");

/** Report that something has worked. */
export function report(text) {
  notice.textContent = text;
  fault.textContent = "";
}

/** Report that something has failed. */
export function reportFault(text) {
  notice.textContent = "";
  fault.textContent = text;
}
