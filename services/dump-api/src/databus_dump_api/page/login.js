// The form for the API key.

import { KeyRefused, key, request } from "./session.js";

const form = document.getElementById("login");
const input = document.getElementById("key");
const refused = document.getElementById("key-refused");
const title = document.getElementById("title");

/** Ask for a key until the API accepts it. */
export async function login() {
  const wrong = key.get() !== null;
  key.forget();
  form.hidden = false;
  input.focus();
  refused.textContent = wrong ? "This key is refused." : "";
  while (!(await accepted(await entered())));
  form.hidden = true;
  input.value = "";
  title.focus();
}

function entered() {
  return new Promise((resolve) => {
    form.addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        resolve(input.value.trim());
      },
      { once: true },
    );
  });
}

async function accepted(text) {
  refused.textContent = "";
  key.set(text);
  try {
    await request("v1/pipeline");
    return true;
  } catch (error) {
    key.forget();
    refused.textContent = error instanceof KeyRefused ? "This key is refused." : error.message;
    input.select();
    return false;
  }
}
