// Every span of a Run that is too large for its page: pieces from the server that the page came from.

import { inflate, readTable } from "./columns";
import type { Model } from "./model";
import { after, emptySpans, fill, type Spans } from "./spans";

const MOST_ROWS = 20_000; // of a lane in view: more than a screen has room for is not asked for
const MOST_PIECES = 128; // kept, more than the rows of a screen need at once: 2.5 MB each

export type Stretch = { spans: Spans; first: number; last: number };

export class Served {
  private readonly before: Float64Array; // spans of the run before every row of the page
  private readonly pieces = new Map<number, Spans | null>(); // null: asked for

  constructor(
    private readonly model: Model,
    private readonly arrived: () => void,
  ) {
    const { count, rows } = model.spans;
    this.before = new Float64Array(rows + 1);
    for (let row = 0; row < rows; row++) this.before[row + 1] = this.before[row]! + (count ? count[row]! : 1);
  }

  /** Spans of a lane in a stretch of time; null: the page's own rows have to do for now. */
  stretches(lane: number, from: number, to: number): Stretch[] | null {
    const { laneFirst, start } = this.model.spans;
    const low = Math.max(after(start, from, laneFirst[lane]!, laneFirst[lane + 1]!) - 1, laneFirst[lane]!);
    const high = after(start, to, laneFirst[lane]!, laneFirst[lane + 1]!);
    const [first, last] = [this.before[low]!, this.before[high]!];
    if (last <= first || last - first > MOST_ROWS) return null;
    const size = this.model.data.spans.piece_rows;
    const found: Stretch[] = [];
    let complete = true;
    for (let piece = Math.floor(first / size); piece * size < last; piece++) {
      const spans = this.piece(piece);
      if (spans)
        found.push({ spans, first: Math.max(first - piece * size, 0), last: Math.min(last - piece * size, size) });
      else complete = false;
    }
    return complete ? found : null;
  }

  private piece(number: number): Spans | null {
    const known = this.pieces.get(number);
    if (known === undefined) {
      void this.fetch(number);
      return null;
    }
    this.pieces.delete(number); // the first of the map is the one that was not used for longest
    this.pieces.set(number, known);
    return known;
  }

  private async fetch(number: number): Promise<void> {
    this.pieces.set(number, null);
    if (this.pieces.size > MOST_PIECES) this.pieces.delete(this.pieces.keys().next().value!);
    const answer = await fetch(new URL(`spans/${number}.bin`, location.href));
    if (!answer.ok) return; // asked for once: the page's own rows stay
    const table = readTable(await inflate(new Uint8Array(await answer.arrayBuffer())));
    const spans = emptySpans(table.rows, Float64Array.of(0, table.rows), false);
    fill(spans, table, 0);
    this.pieces.set(number, spans);
    this.arrived();
  }
}
