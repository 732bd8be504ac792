// Python in a worker: made from a blob, so that the page's content policy holds here too.
const base = self.advisorBase;
const say = (message) => self.postMessage(message);

async function fetched(name) {
  const answer = await fetch(base + name);
  if (!answer.ok) throw new Error(`${name} is missing: build the page again`);
  return answer.arrayBuffer();
}

async function start() {
  say({ progress: 5 });
  const { loadPyodide } = await import(base + "pyodide/pyodide.mjs");
  const archive = fetched("advisor.zip");
  const python = await loadPyodide({ indexURL: base + "pyodide/" });
  say({ progress: 65 });
  python.unpackArchive(await archive, "zip", { extractDir: "/advisor" });
  python.runPython("import os, sys; sys.path.insert(0, '/advisor'); os.makedirs('/work', exist_ok=True); os.chdir('/work')");
  say({ progress: 75 });
  const answering = python.pyimport("advisor.plugins.web.answering");
  say({ progress: 90, gpus: JSON.parse(answering.gpus()) });
  return answering;
}

const ready = start();
ready.then(() => say({ progress: 100, ready: true }), (error) => say({ failed: String(error) }));

self.onmessage = async ({ data }) => {
  const answering = await ready;
  try {
    const answer = JSON.parse(answering[data.what](JSON.stringify(data.request)));
    say({ what: data.what, version: data.version, answer });
  } catch (error) {
    say({ what: data.what, version: data.version, failed: String(error) });
  }
};
