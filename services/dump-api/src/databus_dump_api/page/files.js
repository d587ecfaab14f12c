// The files of a dump, and their downloads.

import { actionButton } from "./actions.js";
import { element } from "./elements.js";
import { key, request } from "./session.js";
import { bytes, count } from "./units.js";

/** how many files are listed at most */
const LISTED = 100;

/** List the files of a dump. */
export async function fileList(dump) {
  try {
    const { files } = await (await request(`v1/dumps/${dump}`)).json();
    const items = files.slice(0, LISTED).map((file) => item(dump, file));
    const rest = files.length > LISTED ? `${count(files.length - LISTED)} more files are not listed. ` : "";
    const command = element("code", {}, `databus dump download ${dump}`);
    return element("div", {}, element("ul", {}, ...items), element("p", { class: "help" }, `${rest}All files: `, command));
  } catch (error) {
    return element("p", {}, `The files cannot be read: ${error.message}`);
  }
}

function item(dump, { name, table, format, rows, bytes: size }) {
  const text = `${table}, ${format}, ${count(rows)} rows, ${bytes(size)} `;
  return element("li", {}, text, actionButton("Download", name, () => download(dump, name)));
}

/** A link cannot send the key: with one, the file is fetched, and then given to the browser. */
async function download(dump, name) {
  const path = `v1/dumps/${dump}/files/${encodeURIComponent(name)}`;
  if (!key.get()) {
    element("a", { href: path, download: name }).click();
    return `The download of ${name} has begun.`;
  }
  const url = URL.createObjectURL(await (await request(path)).blob());
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  return `${name} is downloaded.`;
}
