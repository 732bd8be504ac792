// The fields: menus, sliders and GPUs, what they ask of Python, and what Python's answers set them to.
const FIELDS = ["count", "card", "nodes", "host", "link", "tokens", "config", "json", "model"];
const GPUS = ["count", "card", "nodes", "host", "link"];
const MENUS = ["base", "method"];
const TOKENS = [1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10];
const COMMENT = /^(#[ \t]*advisor:[ \t]*gpus=)(.*?)([ \t]*)$/m;
// The comment whose GPUs the fields hold, and the network that it states, for which there is no field.
let taken = "";
let net = "";

const values = () => ({ ...Object.fromEntries(FIELDS.map((id) => [id, at(id).value])), taken, net });
const tokens = () => TOKENS[at("tokens").value];

function gpus() {
  const nodes = at("nodes").value > 1 ? `${at("nodes").value}n` : "";
  const said = [`${nodes}${at("count").value || 1}x ${at("card").value}`];
  if (at("host").value) said.push(`host=${at("host").value}GiB`);
  if (at("link").value) said.push(`link=${at("link").value}`);
  if (net) said.push(`net=${net}`);
  return said.join(" ");
}

function ownFiles() {
  return at("model").value.trim() ? { "config.json": at("model").value } : {};
}

/** The question about the texts. */
function request() {
  const text = config(), files = ownFiles(), json = named(text);
  if (json && at("json").value.trim()) files[json] = at("json").value;
  return { config: text, files, gpus: gpus(), taken, tokens: tokens() };
}

/** The question to `new`. */
function wanted() {
  const model = at("base").value || at("hub-name").value.trim();
  const length = pending.sequence_len ?? at("length").dataset.exact ?? 2 ** at("length").value;
  return { model, method: at("method").value || "auto", length, tokens: tokens(), gpus: gpus(), files: ownFiles() };
}

/** A menu shows a value, also one that it does not have. */
function choose(menu, value, title = value) {
  if (![...menu.options].some((each) => each.value === value)) menu.add(new Option(title, value), 0);
  menu.value = value;
}

function setGpus(said) {
  for (const id of GPUS) if (id === "card") choose(at(id), said.card); else at(id).value = said[id];
  net = said.net;
}

/** What a comment in the YAML says of the GPUs goes into the fields, where it can be changed. */
function take(stated) {
  taken = stated.said;
  setGpus(stated);
  at("said").textContent = `GPUs from the comment: ${stated.said}`;
}

/** GPUs that a person has chosen, in the comment of the YAML if there is one. */
function restate() {
  const text = at("config").value;
  if (!taken || !COMMENT.test(text)) return;
  taken = gpus();
  write(at("config"), text.replace(COMMENT, (_, lead) => lead + taken));
}

function setFields({ model, method, length, batch, unknown }) {
  choose(at("base"), unknown ? "" : model);
  if (unknown) at("hub-name").value = unknown;
  at("hub").hidden = at("base").value !== "";
  choose(at("method"), method, "As the config has it");
  at("length").value = Math.round(Math.log2(length));
  at("length").dataset.exact = length;
  at("batch").value = Math.round(Math.log2(batch));
  at("length-is").value = length.toLocaleString("en");
  at("batch-is").value = batch;
}

function showTokens() {
  const many = tokens();
  at("tokens-is").value = many < 1e9 ? `${many / 1e6}M` : `${many / 1e9}B`;
}

/** A slider on its way: its value counts at once. */
function slide(id) {
  const value = 2 ** at(id).value;
  pending[id === "length" ? "sequence_len" : "micro_batch_size"] = value;
  at(`${id}-is`).value = value.toLocaleString("en");
}
