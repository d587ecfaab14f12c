// Requests to the API, with the key of this tab. The key is never in a URL.

/** The API wants a key, or another one. */
export class KeyRefused extends Error {}

/** The API refuses a request; the message says why. */
export class Fault extends Error {}

export const key = {
  get: () => sessionStorage.getItem(NAME),
  set: (text) => sessionStorage.setItem(NAME, text),
  forget: () => sessionStorage.removeItem(NAME),
};

/** Send a request, and return the answer. Raises KeyRefused, Fault, and TypeError without a connection. */
export async function request(path, options = {}) {
  const headers = new Headers(options.headers);
  if (key.get()) headers.set("Authorization", `Bearer ${key.get()}`);
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  if (answer.status === 401) throw new KeyRefused();
  if (!answer.ok) throw new Fault(await detail(answer));
  return answer;
}

/** Send JSON. */
export function send(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  return request(path, { method, headers, body: body && JSON.stringify(body) });
}

async function detail(answer) {
  try {
    return (await answer.json()).detail;
  } catch {
    return `${answer.status} ${answer.statusText}`;
  }
}

const NAME = "databus.key";
