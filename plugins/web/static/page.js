// The page: texts to Python in two workers, one for each key and one for pauses; answers into the page.

const PAUSE = 400;
const EXAMPLE = `base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 8
gradient_accumulation_steps: 1
num_epochs: 1
learning_rate: 0.0002
optimizer: adamw_torch_fused
bf16: true
gradient_checkpointing: true
attn_implementation: flash_attention_2
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
`;
const FIELDS = ["count", "card", "nodes", "host", "link", "config", "json", "model"];
const at = (id) => document.getElementById(id);
const base = new URL(".", location.href).href;
let version = 0;
let files = {};
let source = null;
let timers = [];
// The comment whose GPUs the fields hold, and the network that it states, for which there is no field.
let taken = "";
let net = "";

class Python {
  constructor(source, heard) {
    // From file:// Chromium starts no module worker.
    this.worker = new Worker(URL.createObjectURL(source), { type: FROM_DISK ? "classic" : "module" });
    this.worker.postMessage({ base, files });
    this.busy = true;
    this.next = {};
    this.worker.onmessage = ({ data }) => {
      if (data.ready || data.what) this.busy = false;
      heard(data);
      this.send();
    };
    this.worker.onerror = (event) => heard({ failed: event.message || "the worker could not start" });
  }
  // Of each kind only the newest question is asked.
  ask(what, request) {
    this.next[what] = { what, version, request };
    this.send();
  }
  forget() {
    this.next = {};
  }
  send() {
    const [what] = Object.keys(this.next);
    if (this.busy || !what) return;
    const question = this.next[what];
    delete this.next[what];
    this.busy = true;
    this.worker.postMessage(question);
  }
}

const values = () => Object.fromEntries(FIELDS.map((id) => [id, at(id).value]));

function named(text) {
  const found = /^deepspeed:[ \t]*["']?([^\s"'#]+)/m.exec(text);
  return found ? found[1] : null;
}

function request() {
  const now = values();
  const files = {};
  if (now.model.trim()) files["config.json"] = now.model;
  const json = named(now.config);
  if (json && now.json.trim()) files[json] = now.json;
  const count = `${now.nodes > 1 ? now.nodes + "n" : ""}${now.count || 1}x ${now.card}`;
  const gpus = count + (now.host ? ` host=${now.host}GiB` : "") + (now.link ? ` link=${now.link}` : "") + (net ? ` net=${net}` : "");
  return { config: now.config, files, gpus, taken };
}

let quickPython;
let slowPython = null;

const shown = {};

// What is unfolded stays unfolded.
function show(id, html) {
  const box = at(id);
  if (shown[id] !== html) {
    const open = [...box.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
    box.innerHTML = shown[id] = html;
    for (const summary of box.querySelectorAll("details > summary")) {
      if (open.includes(summary.textContent)) summary.parentElement.open = true;
    }
  }
  box.classList.remove("stale");
}

function heard(data) {
  if (data.failed) {
    at("error").textContent = data.failed;
    return;
  }
  if (data.progress !== undefined) at("progress").value = data.progress;
  if (data.gpus) choose(data.gpus);
  if (data.ready) {
    at("loading").hidden = true;
    document.body.dataset.ready = "true";
    changed();
    slowPython = new Python(source, answered);
    later();
  }
  if (data.what) answered(data);
}

function answered(data) {
  if (data.failed) at("error").textContent = data.failed;
  if (!data.what || data.version !== version || !data.answer) return;
  const { what, answer } = data;
  if (what === "quick") {
    if (answer.stated) take(answer.stated);
    at("error").innerHTML = answer.error || "";
    if (answer.error) at("quick").classList.add("stale");
  }
  if (answer.top !== undefined) show("quick", answer.top);
  if (answer.verdict) document.title = `advisor: ${answer.verdict}`;
  if (what === "full") {
    show("full", answer.html);
    patched(answer);
  }
  if (what === "matrix") show("cards", answer.html);
  document.body.dataset[what] = version;
}

// What a comment in the YAML says of the GPUs goes into the fields, where it can be changed.
function take(stated) {
  taken = stated.said;
  net = stated.net;
  for (const id of ["count", "card", "nodes", "host", "link"]) at(id).value = stated[id];
  at("card").dataset.wanted = stated.card;
  at("said").textContent = `GPUs from the comment: ${stated.said}`;
}

function choose(cards) {
  const chosen = at("card").value;
  at("card").replaceChildren(...cards.map(([id, title]) => new Option(title, id)));
  at("card").value = at("card").dataset.wanted || chosen;
}

function changed() {
  version += 1;
  document.body.dataset.version = version;
  for (const id of ["full", "cards", "patched"]) at(id).classList.add("stale");
  if (slowPython) slowPython.forget();
  quickPython.ask("quick", request());
  timers.forEach(clearTimeout);
  timers = [setTimeout(later, PAUSE), setTimeout(keepLink, PAUSE)];
}

function later() {
  if (!slowPython) return;
  for (const what of ["full", "matrix", "reserved"]) slowPython.ask(what, request());
}

async function keepLink() {
  const hash = await packed(values());
  history.replaceState(null, "", "#" + hash);
}

function patched({ safe, all }) {
  const box = at("files");
  box.replaceChildren();
  at("patched").hidden = !Object.keys(safe).length && !Object.keys(all).length;
  at("patched").classList.remove("stale");
  for (const [words, files] of [["The same training", safe], ["Also what changes the training", all]]) {
    const names = Object.keys(files);
    if (!names.length) continue;
    const line = document.createElement("p");
    line.append(`${words}: `);
    const put = document.createElement("button");
    put.type = "button";
    put.textContent = "Apply";
    put.onclick = () => apply(files);
    line.append(put);
    for (const name of names) {
      const link = document.createElement("a");
      link.download = name.split("/").pop();
      link.href = URL.createObjectURL(new Blob([files[name]], { type: "text/plain" }));
      link.textContent = link.download;
      line.append(" ", link);
    }
    box.append(line);
  }
}

function apply(files) {
  for (const [name, text] of Object.entries(files)) {
    if (name === "run.yaml") at("config").value = text;
    else {
      at("json").value = text;
      at("json-box").open = true;
    }
  }
  changed();
}

async function dropped(event) {
  event.preventDefault();
  document.body.classList.remove("dropping");
  for (const file of event.dataTransfer.files) {
    const text = await file.text();
    const isModel = /"(architectures|model_type)"/.test(text);
    const id = /\.ya?ml$/i.test(file.name) ? "config" : isModel ? "model" : "json";
    at(id).value = text;
    if (id !== "config") at(`${id}-box`).open = true;
  }
  changed();
}

async function fromLink() {
  const found = location.hash.length > 1 ? await unpacked(location.hash.slice(1)) : null;
  at("config").value = EXAMPLE;
  for (const id of FIELDS) {
    if (!found || typeof found[id] !== "string") continue;
    if (id === "card") at(id).dataset.wanted = found[id];
    if (id === "card" && ![...at(id).options].some((each) => each.value === found[id])) at(id).add(new Option(found[id], found[id]));
    at(id).value = found[id];
    if (found[id] && (id === "json" || id === "model")) at(`${id}-box`).open = true;
  }
}

async function begin() {
  await fromLink();
  for (const id of FIELDS) at(id).addEventListener("input", changed);
  at("card").addEventListener("input", () => { at("card").dataset.wanted = at("card").value; });
  at("link-button").onclick = async () => {
    await keepLink();
    try {
      await navigator.clipboard.writeText(location.href);
      at("said").textContent = "Copied: all of it is behind the #, which browsers send to nobody.";
    } catch {
      at("said").textContent = "Copy the address of this page.";
    }
  };
  document.body.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.body.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.body.addEventListener("drop", dropped);
  files = await unpackedFiles();
  source = files["worker.js"] ?? await (await fetch("worker.js")).blob();
  quickPython = new Python(source, heard);
}

begin().catch((error) => { at("error").textContent = String(error); });
