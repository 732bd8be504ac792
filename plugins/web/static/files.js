// The page's files by name, as blobs. A page from file:// may load classic scripts alone, so packed.js is one that
// holds what Python needs. A page that is served has none: its files are fetched by address.
const FROM_DISK = location.protocol === "file:";
const TYPES = { wasm: "application/wasm", js: "text/javascript", mjs: "text/javascript", json: "application/json" };

function script(name) {
  return new Promise((loaded, failed) => {
    const node = document.createElement("script");
    node.src = name;
    node.onload = loaded;
    node.onerror = () => failed(new Error(`${name} is missing: build the page again`));
    document.head.append(node);
  });
}

async function unpackedFiles() {
  if (!FROM_DISK) return {};
  await script("packed.js");
  const found = {};
  for (const [name, text] of Object.entries(self.packedFiles)) {
    const bytes = await through(lettersToBytes(text), new DecompressionStream("deflate-raw"));
    found[name] = new Blob([bytes], { type: TYPES[name.split(".").pop()] });
  }
  delete self.packedFiles;
  return found;
}
