// How values are written for people.

const NOT_KNOWN = "not known";

/** Write seconds as a duration. */
export function duration(seconds) {
  if (seconds == null) return NOT_KNOWN;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** Write an amount of bytes. */
export function bytes(amount) {
  if (amount == null) return NOT_KNOWN;
  const unit = amount ? Math.min(Math.floor(Math.log2(amount) / 10), UNITS.length - 1) : 0;
  return `${(amount / 1024 ** unit).toFixed(unit ? 1 : 0)} ${UNITS[unit]}`;
}

/** Write a number, grouped by thousands. */
export function count(amount) {
  return amount == null ? NOT_KNOWN : amount.toLocaleString("en");
}

/** Write a time of the API, which is in UTC, to the second. */
export function time(text) {
  return text ? `${text.slice(0, 19).replace("T", " ")} UTC` : "";
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
