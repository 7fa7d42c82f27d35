/** What is known of one object: where each of its values came from, its state and conditions, and its YAML. */

import * as api from "./api.js";
import { button, h, middle, replace, roving } from "./dom.js";
import { Viewer } from "./editor.js";
import { ofReason } from "./pages.js";
import { pill } from "./states.js";
import type { Line } from "./sets.js";
import type { Document, ModelFit, Node, ValueOrigin } from "./types.js";

type Tab = "status" | "yaml" | "values" | "fit";
const TABS: readonly [Tab, string][] = [
  ["values", "Values"],
  ["status", "Status"],
  ["yaml", "YAML"],
  ["fit", "Fit"],
];

export class Inspector {
  private node: Node | null = null;
  private tab: Tab = "values";
  /** Whether one chose the tab; until then it depends on the object. */
  private chosen = false;
  private documents: readonly Document[] = [];
  /** The step of the simulation that the object is of. */
  private moment: api.Moment | undefined;
  private origins: readonly ValueOrigin[] | null = null;
  private readonly latest = new api.Latest();
  private readonly manifests = new api.Latest();
  private readonly fits = new api.Latest();
  private readonly head = h("div", { class: "inspector-head" });
  private readonly tabs = new Map<Tab, HTMLButtonElement>();
  private readonly panels = new Map<Tab, HTMLElement>();
  private readonly viewer: Viewer;
  private readonly filter = h("input", {
    attrs: { type: "search", placeholder: "Filter by path", "aria-label": "Filter values by path", spellcheck: "false" },
    on: { input: () => this.list() },
  });
  private readonly mine = button("Set by me", () => this.onlyMine(), {
    attrs: { "aria-pressed": "true", title: "Only values that come from a field of the open documents" },
  });
  private readonly found = h("div", { class: "origins" });

  constructor(
    private readonly host: HTMLElement,
    private readonly jump: (document: string, line: number, column?: number) => void,
    /** Marks the line of the editor that set the value at which one looks. */
    private readonly mark: (line: Line | null) => void,
    private readonly closed: () => void,
  ) {
    const bar = h("div", { class: "tabs small", attrs: { role: "tablist", "aria-label": "About the object" } });
    for (const [tab, text] of TABS) {
      const attrs = { role: "tab", id: `inspector-tab-${tab}`, "aria-controls": `inspector-${tab}` };
      const choose = (): void => {
        this.chosen = true;
        this.show(tab);
      };
      const element = button(text, choose, { attrs, on: { focus: () => this.tab !== tab && choose() } });
      this.tabs.set(tab, element);
      bar.append(element);
      const panel = h("div", {
        class: `inspector-panel ${tab}`,
        id: `inspector-${tab}`,
        attrs: { role: "tabpanel", "aria-labelledby": `inspector-tab-${tab}`, tabindex: tab === "status" || tab === "fit" ? 0 : null },
      });
      this.panels.set(tab, panel);
    }
    roving(bar, "[role=tab]");
    const code = h("div", { class: "code" });
    this.panels.get("yaml")?.append(code);
    this.panels.get("values")?.append(h("div", { class: "filter" }, this.mine, this.filter), this.found);
    host.append(this.head, bar, ...this.panels.values());
    this.viewer = new Viewer(code, "The object's YAML");
    host.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.closed();
    });
  }

  /** Shows an object of the graph that these documents lead to, or nothing. */
  set(node: Node | null, documents: readonly Document[], moment?: api.Moment): void {
    const other = node?.id !== this.node?.id;
    const stale = other || documents !== this.documents;
    this.node = node;
    this.documents = documents;
    this.moment = moment;
    this.host.hidden = node === null;
    if (!node) return;
    this.title(node);
    this.status(node);
    if (stale) this.origins = null;
    if (other) replace(this.found, h("p", { class: "muted" }, "Reading…"));
    const judged = node.role === "parent" && node.state !== "refused" && !moment;
    this.tabs.get("fit")!.hidden = !judged;
    const kept = this.tab === "fit" && !judged ? "values" : this.tab;
    this.show(other && !this.chosen ? firstTab(node) : kept);
  }

  /** Shows who set a value. */
  showValue(path: string): void {
    this.filter.value = path;
    this.chosen = true;
    this.show("values");
  }

  focus(): void {
    this.tabs.get(this.tab)?.focus();
  }

  private title(node: Node): void {
    const where = node.document && node.line ? { document: node.document, line: node.line } : null;
    const link = where && button(`${where.document}:${where.line}`, () => this.jump(where.document, where.line), { class: "link" });
    replace(
      this.head,
      h("h2", { attrs: { title: node.name } }, h("span", { class: "kind" }, node.kind), " ", middle(node.name)),
      pill(node.state),
      h("span", { class: "muted" }, node.namespace ? `namespace ${node.namespace}` : "cluster-wide"),
      link,
      button("✕", this.closed, { class: "icon", attrs: { "aria-label": "Close" } }),
    );
  }

  private show(tab: Tab): void {
    this.tab = tab;
    for (const [name, element] of this.tabs) {
      element.setAttribute("aria-selected", String(name === tab));
      element.tabIndex = name === tab ? 0 : -1;
    }
    for (const [name, panel] of this.panels) panel.hidden = name !== tab;
    if (tab === "values") void this.load();
    if (tab === "yaml") void this.yaml();
    if (tab === "fit") void this.judge();
  }

  private status(node: Node): void {
    const panel = this.panels.get("status")!;
    const cause = node.cause ? h("p", { class: `cause ${node.state}` }, node.cause) : null;
    const text = (condition: Record<string, unknown>, key: string): string => String(condition[key] ?? "");
    const conditions = node.conditions.map((condition) =>
      h(
        "tr",
        {},
        h("th", { attrs: { scope: "row" } }, text(condition, "type")),
        h("td", {}, h("span", { class: `truth ${text(condition, "status")}` }, text(condition, "status"))),
        h("td", {}, text(condition, "reason") && text(condition, "status") !== "True" ? ofReason(node.family ?? "", text(condition, "reason")) : text(condition, "reason")),
        h("td", {}, text(condition, "message")),
      ),
    );
    const columns = ["Condition", "Status", "Reason", "Message"].map((name) => h("th", { attrs: { scope: "col" } }, name));
    const table = h("table", {}, h("thead", {}, h("tr", {}, ...columns)), h("tbody", {}, ...conditions));
    replace(panel, cause, conditions.length ? table : h("p", { class: "muted" }, "Its status has no conditions."));
  }

  private async yaml(): Promise<void> {
    const { node, documents, moment } = this;
    if (!node) return;
    if (node.yaml || node.state === "absent") return this.viewer.show(node.yaml || "# There is no such object.\n");
    try {
      const answer = await this.manifests.run((signal) => api.yaml({ documents, node: node.id, ...moment }, signal));
      if (answer !== undefined) this.viewer.show(answer.text);
    } catch (error) {
      this.viewer.show(`# ${(error as Error).message}\n`);
    }
  }

  private async judge(): Promise<void> {
    const { node, documents } = this;
    const panel = this.panels.get("fit")!;
    if (!node) return;
    try {
      const fit = await this.fits.run((signal) => api.fit({ documents, node: node.id }, signal));
      if (fit !== undefined) replace(panel, ...(fit ? arithmetic(fit) : [h("p", { class: "muted" }, NO_MODEL)]));
    } catch (error) {
      replace(panel, h("p", { class: "cause failing" }, (error as Error).message));
    }
  }

  private async load(): Promise<void> {
    const { node, documents } = this;
    if (!node || this.origins) return this.list();
    if (node.role === "related" || node.state === "absent") {
      this.origins = [];
      return this.list();
    }
    try {
      const origins = await this.latest.run((signal) => api.origins({ documents, node: node.id }, signal));
      if (origins === undefined) return;
      this.origins = origins;
      this.list();
    } catch (error) {
      replace(this.found, h("p", { class: "cause failing" }, String((error as Error).message)));
    }
  }

  private list(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    const origins = this.origins ?? [];
    const mine = origins.filter(({ document }) => document);
    this.mine.disabled = !mine.length;
    this.mine.textContent = `Set by me (${mine.length} of ${origins.length})`;
    const listed = mine.length && this.mine.getAttribute("aria-pressed") === "true" ? mine : origins;
    const matching = listed.filter(({ path }) => path.toLowerCase().includes(wanted));
    if (!matching.length) {
      const text = origins.length ? "No value has such a path." : "Nothing here set a value of this object.";
      replace(this.found, h("p", { class: "muted" }, text));
      return;
    }
    const columns = ["Value at", "Is", "Set by"].map((name) => h("th", { attrs: { scope: "col" } }, name));
    const lines = matching.map((origin) =>
      h(
        "tr",
        { on: { mouseenter: () => this.point(origin), mouseleave: () => this.mark(null), focusin: () => this.point(origin), focusout: () => this.mark(null) } },
        h("th", { class: "mono", attrs: { scope: "row" } }, this.short(origin.path)),
        h("td", { class: "mono" }, shortened(origin.value)),
        h("td", {}, this.setter(origin)),
      ),
    );
    replace(this.found, h("table", { class: "origins-table" }, h("thead", {}, h("tr", {}, ...columns)), h("tbody", {}, ...lines)));
  }

  private onlyMine(): void {
    this.mine.setAttribute("aria-pressed", String(this.mine.getAttribute("aria-pressed") !== "true"));
    this.list();
  }

  private point({ document, line }: ValueOrigin): void {
    this.mark(document && line ? { document, line } : null);
  }

  /** The path without the object, which stands above the list. */
  private short(path: string): string {
    const own = `${this.node?.kind}/${this.node?.name} `;
    return path.startsWith(own) ? path.slice(own.length) : path;
  }

  private setter({ origin, document, line, column }: ValueOrigin): HTMLElement {
    if (!document || !line) return h("span", {}, origin);
    return button(origin, () => this.jump(document, line, column ?? 1), {
      class: "link",
      attrs: { title: `Go to ${document}, line ${line}` },
    });
  }
}

const NO_MODEL = "It serves no model on GPUs of its own.";
const ANSWERS: Record<ModelFit["answer"], readonly [Node["state"], string]> = {
  fits: ["ready", "Fits"],
  "does not fit": ["failing", "Does not fit"],
  "cannot know": ["waiting", "Cannot be known"],
};

/** The answer about the memory, and the sum behind it. */
function arithmetic({ answer, why, rows, enough }: ModelFit): HTMLElement[] {
  const [state, word] = ANSWERS[answer];
  const columns = ["Memory", "Amount", "From"].map((name) => h("th", { attrs: { scope: "col" } }, name));
  const lines = rows.map(({ name, amount, source }) =>
    h("tr", {}, h("th", { attrs: { scope: "row" } }, name), h("td", { class: "mono" }, amount), h("td", {}, source)),
  );
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...columns)), h("tbody", {}, ...lines));
  const more = enough.length ? [h("p", {}, `Enough: ${enough.join(" or ")}`)] : [];
  return [h("p", { class: `cause ${state}` }, h("strong", {}, word), `: ${why}`), ...more, ...(rows.length ? [table] : [])];
}

/** What one asks first of an object: what set its values if it is well, else why it is not. */
function firstTab({ role, state }: Node): Tab {
  return state === "ready" && (role === "parent" || role === "child") ? "values" : "status";
}

function shortened(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 159)}…` : text;
}
