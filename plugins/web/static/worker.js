// Python in a worker: made from a blob, so that the page's content policy holds here too.
const say = (message) => self.postMessage(message);
const ask = self.fetch;

// Where a file is: next to the page, or a blob that the page hands over.
function places({ base, files }) {
  const blobs = Object.fromEntries(Object.entries(files).map(([name, blob]) => [base + name, URL.createObjectURL(blob)]));
  return (address) => blobs[address] ?? address;
}

async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} is missing: build the page again`);
  return answer.arrayBuffer();
}

async function start(page) {
  say({ progress: 5 });
  const { base } = page;
  const place = places(page);
  self.fetch = (address, options) => ask(place(address), options);
  // Pyodide tells by it that a worker is classic, and refuses; what it needs of a module, import(), is there too.
  self.importScripts = () => { throw new TypeError("importScripts is not used"); };
  const { loadPyodide } = await import(place(base + "pyodide/pyodide.mjs"));
  const archive = fetched(base + "advisor.zip");
  const createPyodideModule = async (settings) => (await import(place(base + "pyodide/pyodide.asm.mjs"))).default(settings);
  const python = await loadPyodide({ indexURL: base + "pyodide/", createPyodideModule });
  say({ progress: 65 });
  python.unpackArchive(await archive, "zip", { extractDir: "/advisor" });
  python.runPython("import os, sys; sys.path.insert(0, '/advisor'); os.makedirs('/work', exist_ok=True); os.chdir('/work')");
  say({ progress: 75 });
  const answering = python.pyimport("advisor.plugins.web.answering");
  say({ progress: 90 });
  return answering;
}

let ready = null;

self.onmessage = async ({ data }) => {
  if (!ready) {
    ready = start(data);
    ready.then(() => say({ progress: 100, ready: true }), (error) => say({ failed: String(error) }));
    return;
  }
  const answering = await ready;
  try {
    const answer = JSON.parse(answering[data.what](JSON.stringify(data.request)));
    say({ what: data.what, version: data.version, answer });
  } catch (error) {
    say({ what: data.what, version: data.version, failed: String(error) });
  }
};
