/** Elements from code: no markup in strings, so nothing that a user typed can become an element. */

export type Child = Node | string | null | undefined | false;
type Handlers = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
export interface Properties {
  class?: string | undefined;
  id?: string;
  /** Attributes; `true` writes an empty one, and null, undefined and false none. */
  attrs?: Record<string, string | number | boolean | null | undefined>;
  on?: Handlers;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (properties.class) element.className = properties.class;
  if (properties.id) element.id = properties.id;
  for (const [name, value] of Object.entries(properties.attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, handler] of Object.entries(properties.on ?? {})) {
    element.addEventListener(name, handler as EventListener);
  }
  append(element, children);
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

function append(parent: Element, children: Child[]): void {
  parent.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
}

/** The element of the page with this id, which index.html has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element as T;
}

export function button(text: string, run: () => void, properties: Properties = {}): HTMLButtonElement {
  const { attrs, on, ...others } = properties;
  return h("button", { ...others, attrs: { type: "button", ...attrs }, on: { ...on, click: run } }, text);
}

/** Characters at the end of a name that stay where it is too long for its place. */
const TAIL = 9;

/** A name that loses its middle where it is too long: what tells apart names of one service is at the end. */
export function middle(name: string): HTMLElement {
  const at = Math.max(name.length - TAIL, 0);
  return h("span", { class: "name" }, h("span", { class: "name-head" }, name.slice(0, at)), h("span", {}, name.slice(at)));
}

export function debounce(milliseconds: number, run: () => void): () => void {
  let timer: number | undefined;
  return () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(run, milliseconds);
  };
}

/** Arrow keys, Home and End move between the elements of a bar, of which one is in the order of Tab. */
export function roving(bar: HTMLElement, selector: string, horizontal = true): void {
  const [back, on] = horizontal ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  bar.addEventListener("keydown", (event) => {
    const all = [...bar.querySelectorAll<HTMLElement>(selector)];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (at < 0) return;
    const to = { [back]: at - 1, [on]: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all[(to + all.length) % all.length]?.focus();
  });
}
