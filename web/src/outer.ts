// Outer memory: what a device reads from and writes to beyond what its cores keep beside them.

import type { MemoryTotal } from "./contract";

type Traffic = Pick<MemoryTotal, "name" | "read_bytes" | "write_bytes">;

/** Traffic of the outermost memory that the run counts bytes of, all devices together; null: it counts none. */
export function outerTraffic(rows: MemoryTotal[]): Traffic | null {
  const counted = rows.filter((row) => row.read_bytes !== null || row.write_bytes !== null);
  const name = (counted.filter((row) => row.core === null).at(-1) ?? counted.at(-1))?.name;
  if (name === undefined) return null;
  const same = counted.filter((row) => row.name === name);
  const sum = (key: "read_bytes" | "write_bytes"): number | null =>
    same.reduce<number | null>((all, row) => (all === null || row[key] === null ? null : all + row[key]), 0);
  return { name, read_bytes: sum("read_bytes"), write_bytes: sum("write_bytes") };
}
