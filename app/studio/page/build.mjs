// Bundles the page into the directory named on the command line, lists the licences of all that is shipped, and prints
// the size that a browser loads.
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "static");
const AIM = 600 * 1024;
const COPIED = ["index.html", "icon.svg"];

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { studio: "src/main.ts", style: "src/style.css" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome123", "firefox120"], // the first with light-dark()
  external: ["*.svg"],
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
for (const name of COPIED) copyFileSync(join(here, "src", name), join(out, name));
writeFileSync(join(out, "LICENSES.txt"), licences(Object.keys(metafile.inputs)));

const sizes = readdirSync(out).map((name) => {
  const bytes = readFileSync(join(out, name));
  return { name, bytes: bytes.length, compressed: gzipSync(bytes, { level: 9 }).length };
});
for (const { name, bytes, compressed } of sizes) {
  console.log(`${name.padEnd(14)} ${kib(bytes)}  ${kib(compressed)} compressed`);
}
const loaded = sizes.filter(({ name }) => name !== "LICENSES.txt").reduce((sum, { compressed }) => sum + compressed, 0);
console.log(`a browser loads ${kib(loaded).trim()} compressed; the aim is under ${kib(AIM).trim()}`);
if (loaded > AIM) process.exit(1);

function kib(bytes) {
  return `${(bytes / 1024).toFixed(1)} KiB`.padStart(11);
}

// Every package with a file in the bundle, with the whole text of its licence.
function licences(inputs) {
  const names = inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  const texts = [...new Set(names)].sort().map((name) => {
    const directory = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
    const file = readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry));
    if (!license || !file || !existsSync(join(directory, file))) throw new Error(`${name} does not say its licence`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(directory, file), "utf8").trim()}\n`;
  });
  return `The studio's page contains these packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
