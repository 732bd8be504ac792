// Menus and sliders write a config: the plainest at once, and after a pause the fastest that fits.

/** How often the menus were used; whether the ways of `new` are still to be asked for; the text that the menus wrote. */
let menus = 0, waysDue = false, written = null;
/** The ways that were found, by what was asked but for the method: another method is there at once. */
const found = new Map();

/** The menus write the text again until a person has a hand in it. */
const untouched = () => written !== null && written === at("config").value;

/** A config for what the menus say: the plainest at once, and after a pause the fastest that fits. */
function fromMenus() {
  document.body.dataset.version = version += 1;
  menus += 1;
  const known = found.get(waysKey());
  if (known) return newWays(known, true);
  waysDue = true;
  for (const id of ["quick", "options", "ways"]) at(id).classList.add("stale");
  workers.quick?.ask("draft", version, wanted());
}

function waysKey() {
  return JSON.stringify({ ...wanted(), method: at("method").value === "dpo" });
}

/** The ways into the page; of them the one that is asked for, else the one to take, into the editor. */
function newWays(answer, writes) {
  at("ways").hidden = Boolean(answer.error);
  if (answer.error) return;
  found.set(waysKey(), answer);
  show("ways", answer.html);
  kinds = answer.files;
  const { value } = at("method");
  const chosen = ["full", "lora", "qlora"].includes(value) ? value : answer.chosen;
  if (!writes) return;
  if (kinds[chosen]) fromNew(kinds[chosen]);
  else workers.quick?.ask("draft", version, wanted());
}

function fromNew(files) {
  for (const key of Object.keys(pending)) delete pending[key];
  if (!("run.deepspeed.json" in files)) write(at("json"), "");
  put(files);
  written = at("config").value;
  taken = "";
  changed();
}

function gpusChanged({ type }) {
  if (untouched()) return fromMenus();
  if (type === "change") restate();
  changed();
}

function slid({ type, target }) {
  slide(target.id);
  if (type === "input") return changed();
  if (target.id === "length" && untouched()) return fromMenus();
  settle();
  changed();
}

function modelChosen() {
  const isOther = at("base").value === "";
  at("hub").hidden = !isOther;
  if (isOther) return at("hub-name").focus();
  write(at("model"), "");
  remember();
  fromMenus();
}

async function askHub() {
  const name = at("hub-name").value.trim();
  at("said").textContent = `Asking huggingface.co for ${name} ...`;
  try {
    write(at("model"), await fromHub(name));
    at("said").textContent = `config.json of ${name} is there.`;
  } catch (error) {
    at("said").textContent = error.message;
    return;
  }
  if (config().includes(name)) changed();
  else fromMenus();
}
