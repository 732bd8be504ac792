// The texts of the page. What a button writes is written as if it were typed, so that Ctrl-Z takes it back.
const at = (id) => document.getElementById(id);
const isHigh = (text, place) => (text.charCodeAt(place) & 0xfc00) === 0xd800;
/** Scalars that a slider has moved and not yet let go: they count, and are not yet written. */
const pending = {};
/** What the page was before each button that changed it. */
const before = [];

function write(box, text) {
  const old = box.value;
  if (old === text) return;
  let start = 0, end = 0;
  const most = Math.min(old.length, text.length);
  while (start < most && old[start] === text[start]) start += 1;
  if (start && isHigh(old, start - 1)) start -= 1;
  while (end < most - start && old[old.length - 1 - end] === text[text.length - 1 - end]) end += 1;
  if (end && isHigh(old, old.length - end - 1)) end -= 1;
  const fold = box.closest("details");
  if (fold) fold.open = true;
  const focused = document.activeElement;
  const { scrollTop } = box;
  box.focus({ preventScroll: true });
  box.setSelectionRange(start, old.length - end);
  const added = text.slice(start, text.length - end);
  document.execCommand(added ? "insertText" : "delete", false, added);
  // A browser without that command, or without focus here.
  if (box.value !== text) box.value = text;
  box.scrollTop = scrollTop;
  if (focused !== box && focused instanceof HTMLElement) focused.focus({ preventScroll: true });
}

/** The text with another value for a key at the top, whose comment stays. */
function withScalar(text, key, value) {
  const line = new RegExp(`^(${key}:[ \t]*)[^\\s#]+`, "m");
  if (line.test(text)) return text.replace(line, (_, lead) => lead + value);
  return `${text}${text.endsWith("\n") || !text ? "" : "\n"}${key}: ${value}\n`;
}

/** The YAML as the sliders have it. */
function config() {
  return Object.entries(pending).reduce((text, [key, value]) => withScalar(text, key, value), at("config").value);
}

function settle() {
  const text = config();
  for (const key of Object.keys(pending)) delete pending[key];
  write(at("config"), text);
}

/** The file that `deepspeed:` names. */
function named(text) {
  const found = /^deepspeed:[ \t]*["']?([^\s"'#]+)/m.exec(text);
  return found ? found[1] : null;
}

/** Files of Python's into the editor: the YAML, and the JSON that it names. */
function put(files) {
  for (const [name, text] of Object.entries(files)) if (name !== "run.yaml") write(at("json"), text);
  if ("run.yaml" in files) write(at("config"), files["run.yaml"]);
}

function remember() {
  before.push(values());
  at("undo-button").hidden = false;
  at("said").textContent = "";
}

/** What the last button changed, as it was. */
function undo() {
  const old = before.pop();
  at("undo-button").hidden = !before.length;
  if (!old) return false;
  for (const id of FIELDS) if (!["config", "json", "model"].includes(id)) at(id).value = old[id];
  for (const id of ["model", "json", "config"]) write(at(id), old[id]);
  return true;
}
