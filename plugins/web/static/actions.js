// What a person does, and what the page does then.

function openExample({ config: text, json }) {
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
  } else if (example) openExample(DATA.examples.find((each) => each.name === example));
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
