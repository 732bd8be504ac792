// Bundles the extension, and gathers the licenses of what is in the bundle.
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const made = await build({
  entryPoints: ["src/extension.js"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  minify: true,
  metafile: true,
  logLevel: "info",
});

const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const packages = new Set(Object.keys(made.metafile.inputs).flatMap((file) => file.match(folder) ?? []));
const licenses = [...packages].sort().map((name) => {
  const file = readdirSync(name).find((each) => /^licen[sc]e/i.test(each));
  const { version, license } = JSON.parse(readFileSync(`${name}/package.json`, "utf8"));
  const title = `${name.replace(/^.*node_modules\//, "")} ${version} (${license})`;
  return `${title}\n\n${file ? readFileSync(`${name}/${file}`, "utf8").trim() : ""}\n`;
});
writeFileSync("dist/licenses.txt", licenses.join("\n----\n\n"));
