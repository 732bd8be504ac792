"use strict";
// Starts `advisor server` and hands it YAMLs and JSONs; all that is shown comes from there.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const INSTALL = 'pip install "axolotl-advisor[lsp]"';
const LEAD = "# advisor: gpus=";
const LANGUAGES = ["yaml", "json", "jsonc"];
let client;
let lately = Promise.resolve();

/** A client with the settings as they are now. */
function made() {
  const settings = vscode.workspace.getConfiguration("advisor");
  const gpus = settings.get("gpus");
  const selector = ["file", "untitled"].flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language })));
  return new LanguageClient(
    "advisor",
    "axolotl advisor",
    { command: settings.get("path") || "advisor", args: ["server"] },
    { documentSelector: selector, initializationOptions: gpus ? { gpus } : {}, initializationFailedHandler: () => false },
  );
}

/** One start or stop after the other: settings may change while a server is still starting. */
function next(work) {
  lately = lately.then(work, work);
  return lately;
}

async function start() {
  const started = made();
  try {
    await started.start();
    client = started;
  } catch (error) {
    const choice = await vscode.window.showErrorMessage(
      `advisor: the server did not start (${error.message ?? error}). Is it installed? ${INSTALL}`,
      "Settings",
    );
    if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "advisor.path");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.dispose();
}

/** Puts the comment at the top of the file, or the cursor behind the one that is there, and lets the server name cards. */
async function stateGpus() {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "yaml") {
    return;
  }
  const rows = editor.document.getText().split("\n");
  let line = rows.findIndex((row) => row.startsWith(LEAD));
  if (line < 0) {
    line = 0;
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), `${LEAD}\n`));
  }
  const place = new vscode.Position(line, LEAD.length);
  editor.selection = new vscode.Selection(place, new vscode.Position(line, editor.document.lineAt(line).text.length));
  await vscode.commands.executeCommand("editor.action.triggerSuggest");
}

/** `advisor new` in a terminal, where it asks what is open; the model is left to be typed. */
function newConfig() {
  const settings = vscode.workspace.getConfiguration("advisor");
  const gpus = settings.get("gpus");
  const terminal = vscode.window.createTerminal("advisor new");
  terminal.show();
  terminal.sendText(`${settings.get("path") || "advisor"} new${gpus ? ` --gpus "${gpus}"` : ""} `, false);
}

async function activate(context) {
  const again = () => next(async () => (await stop(), await start()));
  context.subscriptions.push(
    vscode.commands.registerCommand("advisor.restart", again),
    vscode.commands.registerCommand("advisor.stateGpus", stateGpus),
    vscode.commands.registerCommand("advisor.new", newConfig),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("advisor") && again()),
  );
  await next(start);
}

module.exports = { activate, deactivate: () => next(stop) };
