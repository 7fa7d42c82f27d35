/** A list of any length of which only the rows in sight are in the page. */

import { h } from "./dom.js";

const MORE = 6;

export class VirtualList<T> {
  private items: readonly T[] = [];
  private readonly space = h("div", { class: "virtual-space", attrs: { role: "presentation" } });
  private focused = 0;
  private queued = false;
  /** Whether the main button is down on a row. A row that is drawn again meanwhile gets no click. */
  private pressed = false;

  constructor(
    private readonly host: HTMLElement,
    private readonly rowHeight: number,
    private readonly row: (item: T) => HTMLElement,
    private readonly open: (item: T) => void,
  ) {
    host.setAttribute("role", "listbox");
    host.tabIndex = 0;
    host.append(this.space);
    host.addEventListener("scroll", () => this.draw(), { passive: true });
    host.addEventListener("keydown", (event) => this.key(event));
    host.addEventListener("focus", () => this.draw());
    host.addEventListener("blur", () => this.draw());
    this.space.addEventListener("pointerdown", ({ button }) => (this.pressed = button === 0));
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => this.release());
    new ResizeObserver(() => this.draw()).observe(host);
  }

  show(items: readonly T[]): void {
    this.items = items;
    this.focused = Math.min(this.focused, Math.max(items.length - 1, 0));
    this.space.style.height = `${items.length * this.rowHeight}px`;
    this.draw();
  }

  private release(): void {
    if (!this.pressed) return;
    this.pressed = false;
    this.draw();
  }

  private draw(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      if (this.pressed) return;
      const first = Math.max(Math.floor(this.host.scrollTop / this.rowHeight) - MORE, 0);
      const last = Math.min(Math.ceil((this.host.scrollTop + this.host.clientHeight) / this.rowHeight) + MORE, this.items.length);
      const rows = this.items.slice(first, last).map((item, index) => this.option(item, first + index));
      this.space.replaceChildren(...rows);
      const active = this.items.length ? `${this.host.id}-${this.focused}` : "";
      if (active && this.focused >= first && this.focused < last) this.host.setAttribute("aria-activedescendant", active);
      else this.host.removeAttribute("aria-activedescendant");
    });
  }

  private option(item: T, index: number): HTMLElement {
    const element = this.row(item);
    const current = index === this.focused;
    element.id = `${this.host.id}-${index}`;
    element.classList.toggle("current", current && document.activeElement === this.host);
    for (const [name, value] of Object.entries({
      role: "option",
      "aria-setsize": this.items.length,
      "aria-posinset": index + 1,
      "aria-selected": current,
    })) {
      element.setAttribute(name, String(value));
    }
    element.style.top = `${index * this.rowHeight}px`;
    element.addEventListener("click", () => {
      this.focused = index;
      this.open(item);
    });
    return element;
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(Math.floor(this.host.clientHeight / this.rowHeight) - 1, 1);
    const item = this.items[this.focused];
    if (event.key === "Enter" && item !== undefined) {
      event.preventDefault();
      this.open(item);
      return;
    }
    const at = this.focused;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.focused = Math.min(Math.max(to, 0), Math.max(this.items.length - 1, 0));
    const top = this.focused * this.rowHeight;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    const bottom = top + this.rowHeight - this.host.clientHeight;
    if (bottom > this.host.scrollTop) this.host.scrollTop = bottom;
    this.draw();
  }
}
