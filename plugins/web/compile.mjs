// node compile.mjs PYODIDE COMPILING ARCHIVE...: Python archives become bytecode of the Python that will run them.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, compiling, ...archives] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(pyodide));
const python = await loadPyodide();
python.runPython(readFileSync(compiling, "utf8"));
for (const path of archives) {
  const archive = python.toPy(new Uint8Array(readFileSync(path)));
  writeFileSync(path, python.globals.get("compiled")(archive).toJs());
}
