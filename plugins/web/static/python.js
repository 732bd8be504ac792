// Python in a worker: of each kind only the newest question is asked, the first kind first.
class Python {
  /** @param {Blob} source @param {(data: object) => void} heard */
  constructor(source, heard) {
    // From file:// Chromium starts no module worker.
    this.worker = new Worker(URL.createObjectURL(source), { type: FROM_DISK ? "classic" : "module" });
    this.worker.postMessage({ base: new URL(".", location.href).href, files: unpackedBlobs });
    this.busy = true;
    this.next = {};
    this.asked = {};
    this.worker.onmessage = ({ data }) => {
      if (data.ready || data.what) this.busy = false;
      heard(data);
      this.send();
    };
    this.worker.onerror = (event) => heard({ failed: event.message || "the worker could not start" });
  }

  /** Of one version a question is asked once. */
  ask(what, version, request) {
    if (this.asked[what] === version) return;
    this.asked[what] = version;
    this.next[what] = { what, version, request };
    this.send();
  }

  forget() {
    for (const what of Object.keys(this.next)) delete this.asked[what];
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

let unpackedBlobs = {};

async function workerSource() {
  unpackedBlobs = await unpackedFiles();
  return unpackedBlobs["worker.js"] ?? (await fetch("worker.js")).blob();
}
