// Elements by hand. Text only ever goes in as text: there is no way here to pass markup.

type Attributes = Record<string, string | number | boolean | null | undefined>;
export type Child = Node | string | number | null | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  assign(element, attributes);
  append(element, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  assign(element, attributes);
  append(element, children);
  return element;
}

function assign(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

export function append(element: Element, children: Iterable<Child>): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

export function button(label: Child, act: (event: MouseEvent) => void, attributes: Attributes = {}): HTMLButtonElement {
  const element = el("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", act);
  return element;
}

/** A sentence in a table: it may take several lines, where a name or a number may not. */
export const words = (text: string): HTMLElement => el("span", { class: "words" }, text);

/** What a table or chart says where there is nothing to show. */
export const nothing = (reason: string): HTMLElement => el("p", { class: "nothing" }, reason);

export function section(title: string, ...children: Child[]): HTMLElement {
  return el("section", { class: "card" }, el("h2", {}, title), ...children);
}

/** A box that a table may be wider than; then it can be reached, and moved, by keys. */
export function scrollBox(label: string, ...children: Child[]): HTMLElement {
  const box = el("div", { class: "scroll" }, ...children);
  new ResizeObserver(() => {
    const wide = box.scrollWidth > box.clientWidth;
    for (const [name, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": label }))
      if (wide) box.setAttribute(name, value);
      else box.removeAttribute(name);
  }).observe(box);
  return box;
}

/** A bar of which so much is full; widths are set by the style object, which the policy of the page allows. */
export function meter(share: number, name = ""): HTMLElement {
  const fill = el("i", name ? { class: name } : {});
  fill.style.width = `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%`;
  return el("span", { class: "meter", "aria-hidden": "true" }, fill);
}
