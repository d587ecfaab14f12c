// Elements of the page. Text is always text: nothing is ever parsed as HTML.

/** Make an element. Attributes that are functions are listeners; null and false leave an attribute out. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Make an element of a drawing. */
export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value != null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Change an element's text, only if it differs: selections and screen readers notice every change. */
export function setText(changed, text) {
  if (changed.textContent !== text) changed.textContent = text;
}

/** Hide or show an element. If it has the focus, the heading of its section gets it. */
export function setHidden(changed, hidden) {
  if (hidden && changed.contains(document.activeElement)) focusHeading(changed);
  changed.hidden = hidden;
}

/** Keep one child of `parent` for each item, in their order. Children stay the same, and so keep focus and selection.
 *
 * `make(item)` returns an object with the `element` of an item, and with `update(item)`.
 */
export function keep(parent, items, keyOf, make) {
  const before = rows.get(parent) ?? new Map();
  const now = new Map();
  for (const item of items) {
    const row = before.get(keyOf(item)) ?? make(item);
    row.update(item);
    now.set(keyOf(item), row);
    before.delete(keyOf(item));
  }
  for (const { element: gone } of before.values()) {
    if (gone.contains(document.activeElement)) focusHeading(gone);
    gone.remove();
  }
  [...now.values()].forEach((row, index) => {
    if (parent.children[index] !== row.element) parent.insertBefore(row.element, parent.children[index] ?? null);
  });
  rows.set(parent, now);
}

/** Keep the rows of a table's body as `keep` does. Instead of a table without rows, the text below it is shown. */
export function fillTable(body, items, keyOf, make) {
  keep(body, items, keyOf, make);
  const area = body.closest(".scroll");
  area.hidden = !items.length;
  area.nextElementSibling.hidden = items.length > 0;
}

/** parent → key → what `make` returned */
const rows = new WeakMap();

function focusHeading(inside) {
  inside.closest("section")?.querySelector("h2").focus();
}
