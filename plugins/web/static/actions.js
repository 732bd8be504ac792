// What a person does, and what the page does then.

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

function open({ config: text, json }) {
  remember();
  taken = "";
  at("ways").hidden = true;
  write(at("model"), "");
  write(at("json"), json);
  write(at("config"), text);
  changed();
}

/** A button within an answer: an option, a way of `new`, a card, an example. */
function pressed({ target }) {
  const button = target.closest("button");
  const { way, kind, card, example } = button?.dataset ?? {};
  if (way && optionsVersion === version) {
    remember();
    if (options[way].files) put(options[way].files);
    else moveTo(options[way].gpus);
    changed();
  } else if (kind) {
    remember();
    fromNew(kinds[kind]);
  } else if (card) {
    remember();
    moveTo(cards[card]);
    if (untouched()) fromMenus();
    else changed();
  } else if (example) open(DATA.examples.find((each) => each.name === example));
}

function moveTo(there) {
  setGpus(there);
  restate();
}

async function dropped(event) {
  event.preventDefault();
  document.body.classList.remove("dropping");
  remember();
  for (const file of event.dataTransfer.files) {
    const text = await file.text();
    const isModel = /"(architectures|model_type)"/.test(text);
    write(at(/\.ya?ml$/i.test(file.name) ? "config" : isModel ? "model" : "json"), text);
  }
  changed();
}

/** The texts of the page as files. */
function offerFiles() {
  const json = named(at("config").value);
  const files = { "run.yaml": at("config").value, ...(json && at("json").value ? { [json]: at("json").value } : {}) };
  const links = Object.entries(files).map(([name, text]) => {
    const link = document.createElement("a");
    link.download = link.textContent = name.split("/").pop();
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    return link;
  });
  for (const link of at("files").querySelectorAll("a")) URL.revokeObjectURL(link.href);
  at("files").replaceChildren("Download ", ...links.flatMap((link) => [link, " "]));
}

async function copyLink() {
  await keepLink();
  try {
    await navigator.clipboard.writeText(location.href);
    at("said").textContent = "Copied: all of it is behind the #, which browsers send to nobody.";
  } catch {
    at("said").textContent = "Copy the address of this page.";
  }
}

function keyed(event) {
  const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key === "z";
  if (!isUndo || /^(TEXTAREA|INPUT)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  takeBack();
}

function takeBack() {
  if (undo()) changed();
}

function listen() {
  const on = (ids, types, does) => {
    for (const id of ids) for (const type of types) at(id).addEventListener(type, does);
  };
  on(GPUS, ["input", "change"], gpusChanged);
  on(["config", "json", "model"], ["input"], changed);
  on(["length", "batch"], ["input", "change"], slid);
  on(["tokens"], ["input"], () => { showTokens(); changed(); });
  on(["tokens"], ["change"], () => { if (untouched()) fromMenus(); });
  on(["base"], ["change"], modelChosen);
  on(["method"], ["change"], () => { remember(); fromMenus(); });
  on(["hub-button"], ["click"], askHub);
  on(["link-button"], ["click"], copyLink);
  on(["picture-button"], ["click"], () => save(picture));
  on(["undo-button"], ["click"], takeBack);
  document.body.addEventListener("click", pressed);
  document.body.addEventListener("keydown", keyed);
  document.body.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.body.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.body.addEventListener("drop", dropped);
}
