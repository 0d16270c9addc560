/* Made from contract.schema.json by `npm run types`; change src/opscope/views/page/contract.py instead. */

/**
 * Every kind of page, for one schema.
 */
export interface Contract {
  page: PageData;
  compare: CompareData;
  store: StoreData;
  bakeoff: BakeoffData;
  calibration: CalibrationData;
}
/**
 * A Run for its page. Tables of numbers are in blocks beside it: `spans-0` …, `commands`, `edges`, …
 */
export interface PageData {
  schema: "opscope.page/1";
  producer: Producer;
  info: RunInfo;
  summary: Summary;
  findings: Findings | null;
  ops: OpInfo[];
  lanes: PageLane[];
  counters: PageCounter[];
  names: string[];
  spans: PageSpans;
  commands: CommandWords | null;
  path: PathWords | null;
  graph: PageGraph;
  resources: Resources | null;
  notes: string[];
}
export interface Producer {
  name: string;
  version: string;
}
/**
 * The head of a run: `run.json`.
 */
export interface RunInfo {
  command: string[];
  created: string;
  model: string;
  sha256: string | null;
  target: string;
  provenance: string;
  network: string;
  devices: number;
  cores: number;
  batch: number | null;
  clocks_hz: {
    [k: string]: number;
  };
  inferences: number[];
  options: {
    [k: string]: string | number | boolean;
  };
  limits: {
    [k: string]: number;
  };
  caveats: string[];
  basis: string;
  classified: string[];
  classified_rows: {
    [k: string]: number;
  };
  words: TargetWords | null;
}
/**
 * The table `[words]` of a target file; a file that extends another has its words.
 */
export interface TargetWords {
  memories: {
    [k: string]: string;
  };
  opstats_tag: string;
  trace_category: string;
}
/**
 * Totals of one inference over everything it ran on.
 */
export interface Summary {
  latency: Latency;
  throughput_per_s: number | null;
  batch: number | null;
  lanes: LaneTotal[];
  memory: MemoryTotal[];
  breakdown: Share[];
  occupancy: Share[];
  op_types: OpTotal[];
  ops: OpTotal[];
  layers: OpTotal[];
  blocks: OpTotal[];
  routes: RouteTotal[];
  waits: WaitTotal[];
  producers: ProducerTotal[];
  balance: CoreBalance[];
  placement: Placement[];
  histogram: Bucket[];
  energy: Energy | null;
  host: HostStage[];
  samples_ns: number[];
  language_model: LanguageModel | null;
}
/**
 * Time of one inference on the device; None: not known.
 */
export interface Latency {
  value_ns: number | null;
  low_ns: number | null;
  high_ns: number | null;
  provenance: string;
}
/**
 * One thread group of one core: busy + wait + idle = wall. Waits that are not recorded are in idle.
 */
export interface LaneTotal {
  device: number;
  core: number;
  name: string;
  busy_ns: number;
  wait_ns: number | null;
  idle_ns: number;
  barrier_ns: number | null;
  engine: string;
}
/**
 * One memory of one core or device.
 */
export interface MemoryTotal {
  name: string;
  device: number;
  core: number | null;
  peak_bytes: number | null;
  mean_bytes: number | null;
  capacity_bytes: number | null;
  read_bytes: number | null;
  write_bytes: number | null;
}
/**
 * A disjoint part of the wall time.
 */
export interface Share {
  cause: string;
  ns: number;
  share: number;
}
/**
 * One graph op, or all ops of one layer, over all cores.
 */
export interface OpTotal {
  name: string;
  type: string;
  wall_ns: number | null;
  busy_ns: number | null;
  wait_ns: number | null;
  share: number | null;
  commands: number | null;
  out_bytes: number | null;
  moved_bytes: number | null;
  macs: number | null;
  engine: string;
  placed: string;
  reason: string;
  energy_j: number | null;
  op: number | null;
  does: string;
  on_cpu: boolean;
  carries: string;
  kernel: string;
  shape: string;
  covers: string[];
  vector_bytes: number | null;
  threads: number | null;
  engine_threads: number | null;
}
/**
 * Transfers of one route on one core; core None: of all cores of the device.
 */
export interface RouteTotal {
  device: number;
  core: number | null;
  route: string;
  transfers: number;
  bytes: number;
  busy_ns: number;
  most_in_flight: number;
}
/**
 * What lanes of one group waited for, as in the findings: an engine, a transfer, another core, the host, …
 */
export interface WaitTotal {
  group: string;
  cause: string;
  wait_ns: number;
  count: number;
}
/**
 * One producer that was waited for.
 */
export interface ProducerTotal {
  op: string;
  kind: string;
  group: string;
  device: number;
  core: number;
  wait_ns: number;
  count: number;
}
/**
 * Work of one core against the mean of its device, without the flush of the statistics at the end.
 */
export interface CoreBalance {
  device: number;
  core: number;
  busy_pcycles: number;
  ratio: number;
  end_ns: number;
}
/**
 * Time that commands of one kind spent with all operands in local memory, and with one in outer memory.
 */
export interface Placement {
  kind: string;
  group: string;
  local_count: number;
  local_ns: number;
  outer_count: number;
  outer_ns: number;
  outer_memory: string;
}
/**
 * Commands that took at least `low_ns` and less than `high_ns`.
 */
export interface Bucket {
  low_ns: number;
  high_ns: number;
  count: number;
  busy_ns: number;
}
/**
 * What one inference takes.
 */
export interface Energy {
  value_j: number;
  low_j: number | null;
  high_j: number | null;
  provenance: string;
  note: string;
}
/**
 * One stage of an inference as the application sees it: a part of its latency.
 */
export interface HostStage {
  name: string;
  ns: number;
  party: string;
  does: string;
}
/**
 * All points of a run; the first one is that of its timeline.
 */
export interface LanguageModel {
  model: string;
  target: string;
  devices: number | null;
  cards: number | null;
  weights: string;
  kv: string;
  parallel: string;
  points: TokenPoint[];
  largest: LargestFit[];
  notes: string[];
}
/**
 * One batch, prompt and context.
 */
export interface TokenPoint {
  batch: number | null;
  prompt: number | null;
  context: number | null;
  ttft_ms: Ranged | null;
  tpot_ms: Ranged | null;
  prefill_tokens_per_s: Ranged | null;
  decode_tokens_per_s: Ranged | null;
  weight_bytes: number | null;
  kv_bytes: number | null;
  capacity_bytes: number | null;
  fits: boolean | null;
  bound_prefill: string;
  bound_decode: string;
  energy_per_token_mj: Ranged | null;
  provenance: string;
  shares_prefill: {
    [k: string]: number;
  };
  shares_decode: {
    [k: string]: number;
  };
  decode_read_bytes: Ranged | null;
}
/**
 * A number, with the range that it is thought to lie in, or that samples of it lay in.
 */
export interface Ranged {
  value: number;
  low: number | null;
  high: number | null;
}
/**
 * The most that fits: of this batch the longest context, or of this context the largest batch.
 */
export interface LargestFit {
  batch: number;
  context: number;
}
/**
 * The analysis of one Run: the verdict first, then causes, costliest first.
 */
export interface Findings {
  bound: string;
  breakdown: Share[];
  wall_ns: number | null;
  provenance: string;
  findings: Finding[];
  path: PathStep[];
  slack: OpSlack[];
  roofline: RooflineOp[];
  coverage: Coverage | null;
  engines: EngineUse[];
  gaps: Gap[];
  waits: WaitFor[];
  rollups: Rollup[];
  checks: LawCheck[];
  notes: string[];
  trials: Trial[];
  unknown_ops: UnknownOp[];
}
/**
 * One cause. `id` is the rule's and stays the same from release to release.
 */
export interface Finding {
  id: string;
  title: string;
  detail: string;
  ops: string[];
  cost_ns: number | null;
  share: number | null;
  action: string;
  predicted: Prediction | null;
  spans: number[];
  bytes: number | null;
}
/**
 * What acting on a finding would gain.
 */
export interface Prediction {
  gain_ns: number;
  latency_ns: number;
  basis: string;
  text: string;
}
/**
 * A stretch of the critical path: one span, or the gap before it.
 */
export interface PathStep {
  start_ns: number;
  end_ns: number;
  span: number | null;
  op: string | null;
  cause: string;
  after: string;
}
/**
 * How much later an op could have ended without the run ending later.
 */
export interface OpSlack {
  op: string;
  row: number;
  slack_ns: number;
  path_ns: number;
}
/**
 * One op against the machine's limits; None where the run or the target does not tell.
 */
export interface RooflineOp {
  op: string;
  macs: number;
  outer_bytes: number;
  intensity: number | null;
  macs_per_s: number | null;
  attainable_macs_per_s: number | null;
  bound_ns: number | null;
  wall_ns: number;
}
/**
 * How much of the run the capture caught.
 */
export interface Coverage {
  share: number | null;
  lost_records: number | null;
  ops_without_time: string[];
  notes: string[];
}
/**
 * All lanes of one name: at work, waiting for something that is known, and neither; per lane, on average.
 */
export interface EngineUse {
  engine: string;
  lanes: number;
  busy_ns: number;
  wait_ns: number | null;
  idle_ns: number;
}
/**
 * A stretch in which a lane did nothing, and what ended it.
 */
export interface Gap {
  device: number;
  core: number;
  lane: string;
  start_ns: number;
  end_ns: number;
  before: string | null;
  ended_by: string;
}
/**
 * What lanes of one name waited for, over all of them.
 */
export interface WaitFor {
  engine: string;
  cause: string;
  op: string | null;
  wait_ns: number;
  count: number;
}
/**
 * One way to add ops up, costliest first. The rows hold every op once.
 */
export interface Rollup {
  by: string;
  rows: RollupRow[];
}
/**
 * Ops under one label, added up; None where the run does not tell.
 */
export interface RollupRow {
  name: string;
  ops: number;
  busy_ns: number | null;
  path_ns: number | null;
  share: number | null;
  macs: number | null;
  moved_bytes: number | null;
}
/**
 * A law, and whether the numbers of a run obey it.
 */
export interface LawCheck {
  name: string;
  holds: boolean | null;
  detail: string;
}
/**
 * One change that a user could make, made: the run was simulated, or estimated, with it.
 */
export interface Trial {
  change: string;
  latency_ns: number;
  speedup: number;
}
/**
 * An op whose cost is not known, and why.
 */
export interface UnknownOp {
  name: string;
  type: string;
  reason: string;
}
/**
 * A graph op that commands point back to.
 */
export interface OpInfo {
  name: string;
  type: string;
  kind: string;
  location: string;
  unknown: string;
  module: string;
  line: string;
}
/**
 * A row of the timeline; its spans are the rows `first` to `first + rows` of all pieces together.
 */
export interface PageLane {
  device: number;
  core: number;
  name: string;
  thread: number;
  first: number;
  rows: number;
}
/**
 * A counter; its samples are the rows `first` to `first + rows` of the block `counters`.
 */
export interface PageCounter {
  device: number;
  core: number;
  name: string;
  unit: string;
  first: number;
  rows: number;
}
/**
 * Where the spans are and how much was put together.
 */
export interface PageSpans {
  spans: number;
  rows: number;
  window_ns: number;
  piece_rows: number;
  pieces: number;
  end_ns: number;
  served: Served | null;
}
/**
 * Every span, in pieces under the page's own address: `spans/<number>.bin`.
 */
export interface Served {
  rows: number;
  pieces: number;
  lane_first: number[];
}
/**
 * Words that the numbers of the block `commands` stand for.
 */
export interface CommandWords {
  rows: number;
  groups: string[];
  routes: string[];
  kinds: string[];
  names: string[];
  memories: string[];
  types: string[];
  shapes: string[];
  operands: string[][];
  attributes: string[];
}
/**
 * Words that the numbers of the block `path` stand for.
 */
export interface PathWords {
  rows: number;
  causes: string[];
  after: string[];
}
/**
 * Data that flows from op to op: of the graph, else as far as the commands tell.
 */
export interface PageGraph {
  sources: number[];
  targets: number[];
}
/**
 * The facts of a resource report.
 */
export interface Resources {
  target_title: string;
  model: ModelFacts;
  memory: MemoryStack;
  totals: Totals;
  layers: LayerResources[];
  suggestions: Suggestion[];
  heavy_memory: LayerAdvice[];
  heavy_macs: LayerAdvice[];
  notes: Note[];
  definition: string;
  figures: TargetFigure[];
}
export interface ModelFacts {
  name: string;
  path: string;
  framework: string;
  sha256: string | null;
  file_bytes: number;
  parameter_bytes: number;
  dtype: string;
  layer_count: number;
  op_count: number;
}
/**
 * RAM from the ground up: what must be alive, what placement adds, what kernels and the runtime add.
 */
export interface MemoryStack {
  bound_bytes: number;
  arena_bytes: number;
  planner: string;
  scratch_bytes: number;
  runtime_bytes: number | null;
  peak_layer: number | null;
  peak_tensors: PeakTensor[];
  unknown_tensors: number;
  uses: MemoryUse[];
  issues: string[];
  recommendations: string[];
  status: string;
  runtime_parts: MemoryPart[];
  runtime_is_whole: boolean;
  other_plan: OtherPlan | null;
}
export interface PeakTensor {
  name: string;
  size_bytes: number;
}
/**
 * One memory of the target: what the model needs of it.
 */
export interface MemoryUse {
  name: string;
  holds: string;
  required_bytes: number;
  available_bytes: number;
}
/**
 * Bytes, and what they are for.
 */
export interface MemoryPart {
  name: string;
  size_bytes: number;
}
/**
 * What another planner would make of the same buffers.
 */
export interface OtherPlan {
  planner: string;
  arena_bytes: number;
  saved_bytes: number;
}
/**
 * The whole inference. Times and energy are None when a layer's cost is unknown: a partial sum would mislead.
 */
export interface Totals {
  cycles: number | null;
  latency_s: Range | null;
  energy_j: Range | null;
  power_w: number | null;
  power_note: string;
  energy_note: string;
  macs: number;
  element_ops: number;
  parameter_bytes: number;
  accelerated_layers: number;
  cpu_layers: number;
  unknown_layers: number[];
  withheld: string;
  known_latency_s: number | null;
  uncounted_layers: number;
}
/**
 * A number and how far it may lie off, from the ranges of the target's figures.
 */
export interface Range {
  value: number;
  low: number;
  high: number;
}
/**
 * What one layer takes; its name, type and place in the source are those of the op of the same number.
 */
export interface LayerResources {
  op: number;
  dtype: string;
  sources: string[];
  trips: number | null;
  engine: string | null;
  accelerated: boolean;
  reason: string;
  cycles: number | null;
  latency_s: number | null;
  energy_j: number | null;
  power_w: number | null;
  bound: string;
  costs: CostPart[];
  macs: number;
  element_ops: number;
  work_known: boolean;
  parameter_bytes: number;
  shared_bytes: number;
  live_bytes: number;
  out_bytes: number;
  moved_bytes: number;
  constant_shapes: number[][];
}
/**
 * Cycles that a layer would take if one resource alone bound it.
 */
export interface CostPart {
  resource: string;
  cycles: number;
  binds: boolean;
}
/**
 * A change worth making, with the numbers before and after.
 */
export interface Suggestion {
  kind: string;
  text: string;
  layers: number[];
  before: Footprint;
  after: Footprint;
}
/**
 * What the model takes as it is, or as a change would leave it; both by estimating the graph on one target.
 */
export interface Footprint {
  latency_s: number | null;
  peak_bytes: number;
  parameter_bytes: number;
  energy_j: number | null;
}
/**
 * A heavy layer and what to do about it.
 */
export interface LayerAdvice {
  layer: number;
  suggestion: string;
}
/**
 * A remark of a reader about the graph, shown to the user.
 */
export interface Note {
  code: string;
  text: string;
  op: string;
}
/**
 * One number of a target file, and where it comes from. The unit is in its name.
 */
export interface TargetFigure {
  part: string;
  name: string;
  value: number;
  low: number | null;
  high: number | null;
  source: string;
}
/**
 * Two or more Runs; the first is the base.
 */
export interface CompareData {
  schema: "opscope.compare-page/1";
  producer: Producer;
  runs: ComparedRun[];
  compared: Compared | null;
}
export interface ComparedRun {
  label: string;
  info: RunInfo;
  summary: Summary;
}
/**
 * What a comparison of the first with the last run says.
 */
export interface Compared {
  verdict: string;
  checks: ComparedCheck[];
  change_ns: number | null;
  parts: ComparedPart[];
  ops: ComparedOp[];
  families: ComparedFamily[];
  notes: string[];
}
/**
 * One limit of a gate.
 */
export interface ComparedCheck {
  name: string;
  passed: boolean;
  reason: string;
}
/**
 * A part of the change of latency.
 */
export interface ComparedPart {
  name: string;
  how: string;
  ns: number;
}
/**
 * An op, or ops that became others, in both runs.
 */
export interface ComparedOp {
  name: string;
  type: string;
  how: string;
  base_ns: number | null;
  new_ns: number | null;
  change_ns: number | null;
}
/**
 * Ops of one type: what was predicted of them, and what was measured.
 */
export interface ComparedFamily {
  name: string;
  ops: number;
  predicted_ns: number;
  measured_ns: number;
}
/**
 * Cells of a store. Their columns are in the block `cells`: axes, metrics, and what tells of each cell.
 */
export interface StoreData {
  schema: "opscope.store-page/1";
  producer: Producer;
  store: string;
  where: string;
  served: boolean;
  cells: number;
  rows: number;
  axes: StoreAxis[];
  metrics: StoreMetric[];
  reasons: string[];
  runs: string[];
  changes: StoreChange[];
  notes: string[];
}
/**
 * Something that cells differ in; column `a<n>` of the block `cells` has places among its words, -1: not known.
 */
export interface StoreAxis {
  name: string;
  sql: string;
  words: string[];
  number: boolean;
}
/**
 * A figure of cells; column `m<n>` of the block `cells`, and `l<n>` to `h<n>` its range.
 */
export interface StoreMetric {
  name: string;
  unit: string;
  better: string;
  sql: string;
  ranged: boolean;
}
/**
 * A change point of one metric of one series, from the cell in row `row` on.
 */
export interface StoreChange {
  metric: number;
  row: number;
  before: number;
  after: number;
  low: number | null;
  high: number | null;
  note: string;
  cause: MovedOp | null;
  ops: MovedOp[];
}
export interface MovedOp {
  name: string;
  ns: number;
}
/**
 * One model on many chips.
 */
export interface BakeoffData {
  schema: "opscope.bakeoff-page/1";
  producer: Producer;
  model: string;
  head: string;
  kinds: BakeoffKind[];
  rows: BakeoffPageRow[];
  notes: string[];
}
/**
 * A kind of number: rows of two kinds are never held against each other.
 */
export interface BakeoffKind {
  name: string;
  why: string;
}
/**
 * A chip as one source tells it; texts are as the other views have them.
 */
export interface BakeoffPageRow {
  target: string;
  title: string;
  group: string;
  backend: string;
  precision: string;
  kind: string;
  why: string;
  latency_ns: number | null;
  low_ns: number | null;
  high_ns: number | null;
  peak_bytes: number | null;
  fits: boolean | null;
  fits_text: string;
  energy_j: number | null;
  energy_text: string;
  energy_whole: boolean;
  time_share: number | null;
  op_share: number | null;
  cpu_ops: string;
  compile_s: number | null;
  sqnr_db: number | null;
  error_text: string;
  is_on_front: boolean;
}
/**
 * A fit: what it predicts against what was measured, and what it found.
 */
export interface CalibrationData {
  schema: "opscope.calibration-page/1";
  producer: Producer;
  target: string;
  head: string;
  rows: CalibrationRow[];
  groups: CalibrationGroups[];
  figures: CalibrationFigure[];
  unexplained: string[];
  next: string;
  skipped: string[];
}
/**
 * A measurement beside what was predicted without its network.
 */
export interface CalibrationRow {
  network: string;
  chip: string;
  precision: string;
  ruled_by: string;
  measured_ns: number;
  predicted_ns: number;
  low_ns: number;
  high_ns: number;
  inside: boolean;
}
export interface CalibrationGroups {
  by: string;
  groups: CalibrationGroup[];
}
/**
 * Errors of rows that have something in common.
 */
export interface CalibrationGroup {
  name: string;
  rows: number;
  median_error: number;
  p90_error: number;
  bias: number;
  coverage: number | null;
  width: number;
}
export interface CalibrationFigure {
  key: string;
  data_sheet: number;
  value: number;
  low: number;
  high: number;
  most: number;
}
