/** The graph as a tree of text, for keyboards and screen readers; shown in place of the canvas when one asks for it. */

import { h, replace } from "./dom.js";
import { hidden, type Fold, type FoldedGraph } from "./resources.js";
import { pill, WORDS } from "./states.js";
import type { Graph, Node } from "./types.js";

interface Row {
  node: Node;
  level: number;
  /** What the object above has to do with this one. */
  relation: string;
}

/** Every node once: parents, below them what they read and make, and so on along the edges. */
export function rows(graph: Graph): Row[] {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const below = new Map<string, [string, string][]>();
  for (const { source, target, label } of graph.edges) below.set(source, [...(below.get(source) ?? []), [target, label]]);
  const targets = new Set(graph.edges.map((edge) => edge.target));
  const found: Row[] = [];
  const seen = new Set<string>();
  const visit = (id: string, level: number, relation: string): void => {
    const node = nodes.get(id);
    if (!node || seen.has(id)) return;
    seen.add(id);
    found.push({ node, level, relation });
    for (const [target, label] of below.get(id) ?? []) {
      if (nodes.get(target)?.role !== "parent") visit(target, level + 1, label);
    }
  };
  const parents = graph.nodes.filter((node) => node.role === "parent");
  const roots = graph.nodes.filter((node) => node.role !== "parent" && !targets.has(node.id));
  for (const node of [...parents, ...roots, ...graph.nodes]) visit(node.id, 1, "");
  return found;
}

function folded(fold: Fold): string {
  const worst = hidden(fold);
  const more = ` and ${fold.members.length - 1} more`;
  return worst ? `${more}, ${worst.count} ${WORDS[worst.state].toLowerCase()}` : more;
}

export class TreeView {
  private readonly items = new Map<string, HTMLElement>();
  private focused: string | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly select: (id: string) => void,
    private readonly open: (id: string) => void,
    private readonly toggle: (id: string) => void,
  ) {
    host.setAttribute("role", "tree");
    host.setAttribute("aria-label", "Objects");
    host.addEventListener("keydown", (event) => this.key(event));
  }

  show(graph: FoldedGraph): void {
    const had = this.host.contains(document.activeElement);
    this.items.clear();
    const all = rows(graph);
    for (const { node, level, relation } of all) {
      const fold = graph.folds.get(node.id);
      const item = h(
        "div",
        {
          class: `item ${node.state}`,
          attrs: { role: "treeitem", "aria-level": level, "aria-expanded": fold && String(fold.open), "data-node": node.id, tabindex: -1 },
          on: {
            click: () => this.open(node.id),
            focus: () => {
              this.rove(node.id);
              this.select(node.id);
            },
          },
        },
        h("span", { class: "item-relation" }, relation),
        h("span", { class: "item-kind" }, node.kind),
        h("span", { class: "item-name" }, node.name, fold && !fold.open ? h("span", { class: "kind" }, folded(fold)) : null),
        pill(node.state),
        node.cause ? h("span", { class: "item-cause" }, node.cause) : null,
      );
      item.style.setProperty("--level", String(level - 1));
      this.items.set(node.id, item);
    }
    replace(this.host, ...this.items.values());
    if (this.focused === null || !this.items.has(this.focused)) this.focused = all[0]?.node.id ?? null;
    if (this.focused !== null) this.rove(this.focused);
    if (had && this.focused !== null) this.items.get(this.focused)?.focus();
  }

  mark(id: string | null): void {
    for (const [node, item] of this.items) item.setAttribute("aria-selected", String(node === id));
    if (id !== null && this.items.has(id)) this.rove(id);
  }

  focus(): void {
    if (this.focused !== null) this.items.get(this.focused)?.focus();
  }

  private rove(id: string): void {
    if (this.focused !== null) this.items.get(this.focused)?.setAttribute("tabindex", "-1");
    this.items.get(id)?.setAttribute("tabindex", "0");
    this.focused = id;
  }

  private key(event: KeyboardEvent): void {
    const all = [...this.items.keys()];
    const at = this.focused === null ? 0 : all.indexOf(this.focused);
    if ((event.key === "Enter" || event.key === " ") && this.focused !== null) {
      event.preventDefault();
      this.open(this.focused);
      return;
    }
    const expanded = this.focused === null ? null : this.items.get(this.focused)?.getAttribute("aria-expanded");
    if (this.focused !== null && expanded && expanded === { ArrowRight: "false", ArrowLeft: "true" }[event.key]) {
      event.preventDefault();
      this.toggle(this.focused);
      return;
    }
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowLeft: this.above(all, at), Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.items.get(all[Math.min(Math.max(to, 0), all.length - 1)] ?? "")?.focus();
  }

  private above(all: readonly string[], at: number): number {
    const level = (index: number): number => Number(this.items.get(all[index] ?? "")?.getAttribute("aria-level") ?? 1);
    let to = at;
    while (to > 0 && level(to) >= level(at)) to--;
    return to;
  }
}
