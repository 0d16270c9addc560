// Builds page.js, page.css and the licences of what is bundled; with --tests, the tests; with --out DIR, elsewhere.
import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const place = process.argv.indexOf("--out");
const out = place > 0 ? resolve(process.argv[place + 1]) : join(here, "../src/opscope/views/page/web");

async function buildTests() {
  await rm(join(here, ".build"), { recursive: true, force: true });
  const names = (await readdir(join(here, "test"))).filter((name) => name.endsWith(".test.ts"));
  await build({
    absWorkingDir: here,
    entryPoints: names.map((name) => join("test", name)),
    outdir: ".build/tests",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["ajv", "ajv/*"],
  });
}

async function buildPage() {
  await mkdir(out, { recursive: true });
  const common = {
    absWorkingDir: here,
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    write: false,
    metafile: true,
    target: ["chrome123", "firefox120", "safari17.5"],
  };
  const script = await build({ ...common, entryPoints: ["src/main.ts"], format: "iife", outfile: "page.js" });
  const style = await build({ ...common, entryPoints: ["src/page.css"], outfile: "page.css" });
  await writeFile(join(out, "page.js"), script.outputFiles[0].text);
  await writeFile(join(out, "page.css"), style.outputFiles[0].text);
  const inputs = [...Object.keys(script.metafile.inputs), ...Object.keys(style.metafile.inputs)];
  await writeFile(join(out, "THIRD_PARTY_LICENSES.txt"), await licences(inputs));
}

async function licences(inputs) {
  const names = new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  const parts = ["page.js and page.css contain the following packages.\n"];
  for (const name of [...names].sort()) {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file`);
    const text = (await readFile(join(folder, file), "utf8")).trim();
    parts.push(`${"=".repeat(80)}\n${name} ${about.version} (${about.license})\n${"=".repeat(80)}\n\n${text}\n`);
  }
  return parts.join("\n");
}

await (process.argv.includes("--tests") ? buildTests() : buildPage());
