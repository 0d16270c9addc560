// What to know before a number on the page is believed.

import type { PageData } from "./contract";
import { el } from "./dom";
import { count } from "./format";
import { prose } from "./text";

const MOST_LAWS = 8;

/** A box with a sentence in bold, one that explains it, and a list. */
export const notice = (said: string, explained: string, lines: string[]): HTMLElement =>
  el(
    "div",
    { class: "notice" },
    el("span", { class: "sign", "aria-hidden": "true" }, "!"),
    el("div", {}, el("b", {}, `${said}. `), explained, el("ul", {}, ...lines.map((line) => el("li", {}, line)))),
  );

const broken = (data: Pick<PageData, "findings">) => (data.findings?.checks ?? []).filter((law) => law.holds === false);

/** Laws of physics or conservation that the numbers of the run break; one line each. */
export function brokenLaws(data: Pick<PageData, "findings">): string[] {
  const laws = broken(data);
  const lines = laws.slice(0, MOST_LAWS).map((law) => `${prose(law.name, 120)}: ${prose(law.detail, 200)}`);
  return laws.length > lines.length ? [...lines, `and ${count(laws.length - lines.length)} more`] : lines;
}

/** The notice; nothing where every law holds. */
export function brokenNotice(data: Pick<PageData, "findings">): HTMLElement | string {
  const laws = broken(data).length;
  if (!laws) return "";
  const said = `${count(laws)} ${laws === 1 ? "law is" : "laws are"} broken`;
  return notice(said, "The numbers on this page cannot all be right.", brokenLaws(data));
}
