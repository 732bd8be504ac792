"use strict";
// The bundle against `advisor server` (ADVISOR names the command), with a stand-in for VS Code.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const Module = require("node:module");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { vscode, said, settings, workbench, fired } = require("./vscode.js");

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
const extension = require("../dist/extension.js");

const CONFIG = `\
# advisor: gpus=4x a100-40gb
base_model: meta-llama/Llama-3.1-8B
sequence_len: 2048
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 1
num_epochs: 1
learning_rate: 0.0002
optimizer: adamw_torch_fused
bf16: true
deepspeed: deepspeed_configs/zero1.json
gradient_checkpointing: true
attn_implementation: flash_attention_2
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
`;
const context = { subscriptions: [] };
const token = new vscode.CancellationTokenSource().token;
const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "advisor-"));
let document;

async function until(what, fulfilled) {
  const end = Date.now() + 120_000;
  while (Date.now() < end) {
    const found = await fulfilled();
    if (found) {
      return found;
    }
    await new Promise((done) => setTimeout(done, 20));
  }
  assert.fail(`${what}: ${JSON.stringify([...said.diagnostics], null, 1)}`);
}

const found = (of) => said.diagnostics.get(of.uri.toString()) ?? [];
const has = (of, code) => found(of).some((each) => (each.code?.value ?? each.code) === code);
const provider = (name) => said.providers[name].at(-1);
const range = (line) => new vscode.Range(line, 0, line, 0);
const actions = (line) =>
  provider("registerCodeActionsProvider").provideCodeActions(document, range(line), { diagnostics: [] }, token);

before(async () => {
  process.chdir(folder);
  settings["advisor.path"] = process.env.ADVISOR || "advisor";
  await extension.activate(context);
  document = workbench.open(path.join(folder, "run.yaml"), CONFIG);
  await until("findings", () => has(document, "does-not-fit"));
});

after(async () => {
  await extension.deactivate();
  context.subscriptions.forEach((each) => each.dispose());
  fs.rmSync(folder, { recursive: true });
});

test("the verdict is a hint at the model, and the hover says the answer", async () => {
  const hints = await provider("registerInlayHintsProvider").provideInlayHints(document, range(1), token);
  assert.match(String(hints[0].label), /^does not fit 4x A100-40GB SXM: /);
  const hover = await provider("registerHoverProvider").provideHover(document, new vscode.Position(1, 3), token);
  assert.match(hover.contents.value, /Does not fit: needs [\d.]+ GiB/);
});

test("completion names optimizers", async () => {
  const line = CONFIG.split("\n").findIndex((row) => row.startsWith("optimizer"));
  const place = new vscode.Position(line, "optimizer: adamw".length);
  const asked = { triggerKind: 0, triggerCharacter: undefined };
  const items = await provider("registerCompletionItemProvider").provideCompletionItems(document, place, token, asked);
  assert.ok((items.items ?? items).some((each) => each.label === "adamw_bnb_8bit"));
});

test("the GPUs of the settings count once they are changed", async () => {
  workbench.change(document, CONFIG.slice(CONFIG.indexOf("\n") + 1));
  await until("no GPUs", () => has(document, "unknown-hardware"));
  const titles = (await actions(0)).map((each) => each.title);
  assert.ok(titles.some((each) => each.startsWith("advisor: State GPUs: 8x H100")), titles);
  settings["advisor.gpus"] = "1x rtx-4090";
  fired.onDidChangeConfiguration.fire({ affectsConfiguration: (section) => section === "advisor" });
  await until("a verdict", () => has(document, "does-not-fit"));
  workbench.change(document, CONFIG);
});

test("the command states GPUs at the top and lists cards", async () => {
  const edits = [];
  vscode.window.activeTextEditor = { document, edit: async (work) => work({ insert: (at, text) => edits.push([at.line, text]) }) };
  await said.commands.get("advisor.stateGpus")();
  assert.deepEqual(edits, []);
  assert.equal(vscode.window.activeTextEditor.selection.start.character, "# advisor: gpus=".length);
  assert.ok(said.executed.includes("editor.action.triggerSuggest"));
});

test("a new config is begun in a terminal, and the model is left to be typed", () => {
  said.commands.get("advisor.new")();
  assert.deepEqual(said.typed, [[`${settings["advisor.path"]} new --gpus "1x rtx-4090" `, false]]);
});

test("an action that makes a JSON is applied, and the JSON counts as there", async () => {
  const fit = await until("the plan", async () => {
    const all = (await actions(1)) ?? [];
    return all.find((each) => each.title.startsWith("advisor: Make it fit: same training"));
  });
  workbench.apply(fit.edit);
  assert.match(document.text, /deepspeed: run\.[\w-]+\.json/);
  await vscode.commands.executeCommand(fit.command.command, ...fit.command.arguments);
  await until("it fits", () => !has(document, "does-not-fit") && !has(document, "missing-deepspeed-file"));
  assert.deepEqual(fs.readdirSync(folder), []);
});

test("a server that is not there is said, with what to install", async () => {
  settings["advisor.path"] = path.join(folder, "nothing");
  await said.commands.get("advisor.restart")();
  assert.match(said.messages.join("\n"), /pip install "axolotl-advisor\[lsp\]"/);
});
