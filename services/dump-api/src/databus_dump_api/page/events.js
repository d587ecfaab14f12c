// Server-sent events. EventSource cannot send a header, so they are read from the answer of a normal request.

import { request } from "./session.js";

/** Yield the data of each event, until the stream ends. Raises what `request` raises. */
export async function* follow(path, signal) {
  const answer = await request(path, { signal, headers: { Accept: "text/event-stream" } });
  const texts = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await texts.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    yield* events.map(dataOf);
  }
}

function dataOf(event) {
  const lines = event.split("\n").filter((line) => line.startsWith("data: "));
  return JSON.parse(lines.map((line) => line.slice("data: ".length)).join("\n"));
}
