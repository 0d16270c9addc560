// contract.schema.json → src/contract.ts; with --print, to stdout.
import { compileFromFile } from "json-schema-to-typescript";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const text = await compileFromFile(join(here, "contract.schema.json"), {
  bannerComment:
    "/* Made from contract.schema.json by `npm run types`; change src/opscope/views/page/contract.py instead. */",
  additionalProperties: false,
  style: { printWidth: 120 },
});
if (process.argv.includes("--print")) process.stdout.write(text);
else await writeFile(join(here, "src/contract.ts"), text);
