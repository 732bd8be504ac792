"use strict";
// A stand-in for the module `vscode`: as much of it as vscode-languageclient and the extension use.

const { EventEmitter: Events } = require("node:events");
const { pathToFileURL, fileURLToPath } = require("node:url");

class Disposable {
  constructor(end = () => {}) {
    this.end = end;
  }
  static from(...all) {
    return new Disposable(() => all.forEach((each) => each.dispose()));
  }
  dispose() {
    this.end();
  }
}

class EventEmitter {
  constructor() {
    this.events = new Events();
    this.event = (listener, self, disposables) => {
      const bound = self ? listener.bind(self) : listener;
      this.events.on("event", bound);
      const disposable = new Disposable(() => this.events.off("event", bound));
      disposables?.push(disposable);
      return disposable;
    };
  }
  fire(value) {
    this.events.emit("event", value);
  }
  dispose() {
    this.events.removeAllListeners();
  }
}

class CancellationTokenSource {
  constructor() {
    this.emitter = new EventEmitter();
    this.token = { isCancellationRequested: false, onCancellationRequested: this.emitter.event };
  }
  cancel() {
    this.token.isCancellationRequested = true;
    this.emitter.fire();
  }
  dispose() {}
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(...ends) {
    const [start, end] = ends.length === 4 ? [new Position(...ends.slice(0, 2)), new Position(...ends.slice(2))] : ends;
    Object.assign(this, { start, end });
  }
}

class Uri {
  constructor(text) {
    const url = new URL(text);
    Object.assign(this, { scheme: url.protocol.slice(0, -1), path: decodeURIComponent(url.pathname), text });
  }
  static parse(text) {
    return new Uri(text);
  }
  static file(path) {
    return new Uri(pathToFileURL(path).href);
  }
  get fsPath() {
    return fileURLToPath(this.text);
  }
  toString() {
    return this.text;
  }
}

/** A class that keeps what it is made with under the names of VS Code's own. */
const kept = (...names) =>
  class {
    constructor(...values) {
      names.forEach((name, place) => (this[name] = values[place]));
    }
  };

class CodeActionKind {
  constructor(value) {
    this.value = value;
  }
  append(part) {
    return new CodeActionKind(this.value ? `${this.value}.${part}` : part);
  }
  contains(other) {
    return other.value.startsWith(this.value);
  }
}
for (const [name, value] of Object.entries({
  Empty: "",
  QuickFix: "quickfix",
  Refactor: "refactor",
  RefactorExtract: "refactor.extract",
  RefactorInline: "refactor.inline",
  RefactorRewrite: "refactor.rewrite",
  Source: "source",
  SourceOrganizeImports: "source.organizeImports",
})) {
  CodeActionKind[name] = new CodeActionKind(value);
}

class MarkdownString {
  constructor(value = "") {
    this.value = value;
  }
  appendMarkdown(text) {
    this.value += text;
    return this;
  }
  appendCodeblock(text, language) {
    return this.appendMarkdown(`\n\`\`\`${language}\n${text}\n\`\`\`\n`);
  }
}

class WorkspaceEdit {
  constructor() {
    this.steps = [];
  }
  createFile(uri) {
    this.steps.push({ uri });
  }
  set(uri, edits) {
    this.steps.push({ uri, edits: edits.map((each) => (Array.isArray(each) ? each[0] : each)) });
  }
}

class Document {
  constructor(path, text) {
    const languageId = path.endsWith(".json") ? "json" : "yaml";
    Object.assign(this, { uri: Uri.file(path), fileName: path, languageId, text, version: 1, isDirty: false });
    Object.assign(this, { isUntitled: false, isClosed: false, eol: 1 });
  }
  getText() {
    return this.text;
  }
  get lineCount() {
    return this.text.split("\n").length;
  }
  lineAt(line) {
    return { text: this.text.split("\n")[line] };
  }
  offsetAt({ line, character }) {
    const rows = this.text.split("\n").slice(0, line);
    return rows.reduce((sum, row) => sum + row.length + 1, 0) + character;
  }
}

const settings = {};
const said = { typed: [], diagnostics: new Map(), messages: [], providers: {}, commands: new Map(), executed: [] };
const fired = new Proxy({}, { get: (all, name) => (all[name] ??= new EventEmitter()) });
const documents = [];
const match = ({ scheme, language }, document) =>
  (!scheme || scheme === document.uri.scheme) && (!language || language === document.languageId) ? 10 : 0;

/** Members that are registered or heard and do nothing more here. */
const quiet = (own) =>
  new Proxy(own, {
    get(all, name) {
      if (name in all || typeof name === "symbol") {
        return all[name];
      }
      if (/^on(Did|Will)/.test(name)) {
        return fired[name].event;
      }
      if (/^register/.test(name)) {
        return (_, provider) => {
          (said.providers[name] ??= []).push(provider);
          return new Disposable();
        };
      }
      return undefined;
    },
  });

const languages = quiet({
  match: (selector, document) => Math.max(...[selector].flat().map((each) => match(each, document))),
  createDiagnosticCollection: () => ({
    set: (uri, found) => said.diagnostics.set(uri.toString(), found),
    delete: (uri) => said.diagnostics.delete(uri.toString()),
    clear: () => said.diagnostics.clear(),
    dispose: () => said.diagnostics.clear(),
  }),
});

const message = async (text) => void said.messages.push(text);
const window = quiet({
  activeTextEditor: undefined,
  visibleTextEditors: [],
  tabGroups: { all: [], onDidChangeTabs: fired.tabs.event, onDidChangeTabGroups: fired.groups.event },
  createOutputChannel: () =>
    new Proxy({ logLevel: 3, onDidChangeLogLevel: fired.level.event }, { get: (all, name) => all[name] ?? (() => {}) }),
  createTerminal: () => ({ show() {}, sendText: (...words) => said.typed.push(words) }),
  showErrorMessage: message,
  showWarningMessage: message,
  showInformationMessage: message,
  withProgress: (_, work) => work({ report() {} }, new CancellationTokenSource().token),
});

const workspace = quiet({
  textDocuments: documents,
  notebookDocuments: [],
  workspaceFolders: [],
  getConfiguration: (section) => ({ get: (name, other) => settings[`${section}.${name}`] ?? other, has: () => false }),
  getWorkspaceFolder: () => undefined,
  createFileSystemWatcher: () => ({ onDidCreate() {}, onDidChange() {}, onDidDelete() {}, dispose() {} }),
});

const commands = {
  registerCommand(name, run) {
    said.commands.set(name, run);
    return new Disposable(() => said.commands.delete(name));
  },
  async executeCommand(name, ...values) {
    said.executed.push(name);
    return said.commands.get(name)?.(...values);
  },
};

/** What the workbench does: opens a document, types, applies an edit. */
const workbench = {
  open(path, text) {
    const document = new Document(path, text);
    documents.push(document);
    fired.onDidOpenTextDocument.fire(document);
    return document;
  },
  change(document, text) {
    const [start, end] = [new Position(0, 0), new Position(document.lineCount, 0)];
    const change = { range: new Range(start, end), rangeOffset: 0, rangeLength: document.text.length, text };
    Object.assign(document, { text, version: document.version + 1, isDirty: true });
    fired.onDidChangeTextDocument.fire({ document, contentChanges: [change] });
  },
  apply(edit) {
    for (const { uri, edits } of edit.steps) {
      let document = documents.find((each) => each.uri.text === uri.text);
      if (!edits) {
        document ?? workbench.open(uri.fsPath, "");
        continue;
      }
      let { text } = document;
      const places = edits.map((each) => [document.offsetAt(each.range.start), document.offsetAt(each.range.end), each]);
      for (const [start, end, each] of places.sort((one, other) => other[0] - one[0])) {
        text = text.slice(0, start) + each.newText + text.slice(end);
      }
      workbench.change(document, text);
    }
  },
};

const known = {
  CancellationError: class extends Error {},
  CancellationTokenSource,
  CodeAction: kept("title", "kind"),
  CodeActionKind,
  CodeActionTriggerKind: { Invoke: 1, Automatic: 2 },
  CodeLens: kept("range", "command"),
  CompletionItem: kept("label", "kind"),
  CompletionItemKind: { Text: 0 },
  CompletionItemTag: { Deprecated: 1 },
  CompletionList: kept("items", "isIncomplete"),
  CompletionTriggerKind: { Invoke: 0, TriggerCharacter: 1, TriggerForIncompleteCompletions: 2 },
  Diagnostic: kept("range", "message", "severity"),
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
  Disposable,
  EventEmitter,
  Hover: kept("contents", "range"),
  InlayHint: kept("position", "label", "kind"),
  Location: kept("uri", "range"),
  LogLevel: { Trace: 1, Info: 3 },
  MarkdownString,
  Position,
  Range,
  Selection: Range,
  SymbolKind: { Property: 6, TypeParameter: 25 },
  SymbolTag: { Deprecated: 1 },
  TextEdit: kept("range", "newText"),
  Uri,
  WorkspaceEdit,
  commands,
  env: { language: "en", appName: "stub" },
  languages,
  version: "1.91.0",
  window,
  workspace,
};
known.TextEdit.replace = (range, text) => new known.TextEdit(range, text);

/** Classes that are named when the client is loaded, and not used. */
const NAMED =
  "CallHierarchyItem DocumentLink SymbolInformation TypeHierarchyItem DocumentSymbol SemanticTokens RelativePattern " +
  "SnippetString SignatureHelp SelectionRange FoldingRange Color InlineCompletionItem TabInputText TabInputTextDiff " +
  "TabInputCustom TabInputNotebook DiagnosticRelatedInformation InlayHintLabelPart";
NAMED.split(" ").forEach((name) => (known[name] ??= class {}));

module.exports = { vscode: known, said, settings, workbench, fired };
