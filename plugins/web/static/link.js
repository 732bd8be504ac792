// A page in its own address: JSON, deflated, in the letters that a fragment may hold.
const MOST = 8 << 20; // bytes of a link, unpacked: some thousand are a page

async function through(bytes, stream, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const pieces = [];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(pieces).arrayBuffer());
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new Error("too large");
    }
    pieces.push(value);
  }
}

function lettersToBytes(letters) {
  const text = atob(letters), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

async function packed(value) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(value)), new CompressionStream("deflate-raw"));
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  try {
    const letters = text.replaceAll("-", "+").replaceAll("_", "/");
    const bytes = await through(lettersToBytes(letters), new DecompressionStream("deflate-raw"), MOST);
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

async function keepLink() {
  offerFiles();
  history.replaceState(null, "", "#" + (await packed(values())));
}

/** What the link says of the fields; whether there is one. */
async function fromLink() {
  const found = location.hash.length > 1 ? await unpacked(location.hash.slice(1)) : null;
  if (!found) return false;
  for (const id of FIELDS) {
    if (typeof found[id] !== "string") continue;
    if (id === "card") choose(at(id), found[id]);
    else at(id).value = found[id];
    if (found[id] && at(`${id}-box`)) at(`${id}-box`).open = true;
  }
  taken = typeof found.taken === "string" ? found.taken : "";
  net = typeof found.net === "string" ? found.net : "";
  return true;
}
