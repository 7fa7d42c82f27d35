/** A graph with all that belongs to it: canvas, tree, legend, zoom, and the inspector of the chosen object. */

import type { Moment } from "./api.js";
import { button, h, replace } from "./dom.js";
import { FAMILIES } from "./families.js";
import { GraphView } from "./graph.js";
import { Inspector } from "./inspector.js";
import { FOLDED_ABOVE, folded, type FoldedGraph } from "./resources.js";
import { legend, WORDS } from "./states.js";
import { TreeView } from "./tree.js";
import { LineSets, type Line } from "./sets.js";
import type { Document, Graph, Node } from "./types.js";

const STATES = ["ready", "waiting", "failing", "refused", "absent"] as const;

export class Stage {
  readonly element: HTMLElement;
  private readonly view: GraphView;
  private readonly tree: TreeView;
  private readonly inspector: Inspector;
  private readonly words = h("p", { class: "summary", attrs: { role: "status" } });
  private readonly canvas = h("div", { class: "graph", attrs: { role: "group", "aria-label": "Graph" } });
  private readonly empty = h("p", { class: "empty" });
  private readonly asList: HTMLButtonElement;
  private readonly filters: HTMLElement;
  private readonly text = h("input", {
    attrs: { type: "search", placeholder: "Kind, name or cause", "aria-label": "Filter objects", spellcheck: "false" },
    on: { input: () => this.draw() },
  });
  private readonly states = choice("State", "All states", STATES.map((state) => [state, WORDS[state]]), () => this.draw());
  private readonly families = choice("Family of the objects", "All families", Object.entries(FAMILIES), () => this.draw());
  private readonly failing = button("Failing only", () => this.onlyFailing(), { attrs: { "aria-pressed": "false" } });
  private readonly all = button("Clear", () => this.clear(), { class: "quiet" });
  /** Resources that one opened or closed. */
  private readonly opened = new Map<string, boolean>();
  private graph: Graph = { nodes: [], edges: [] };
  private shown: FoldedGraph = { nodes: [], edges: [], folds: new Map(), count: { kept: 0, all: 0 } };
  private documents: readonly Document[] = [];
  private moment: Moment | undefined;
  private nothing = "";
  private loading = 0;
  private selected: string | null = null;
  /** The cursor of the editor while the graph is that of its documents. */
  private line: Line | null = null;
  private readonly sets: LineSets;

  constructor(jump: (document: string, line: number, column?: number) => void, mark: (line: Line | null) => void) {
    const tree = h("div", { class: "tree", id: "tree" });
    const inspector = h("aside", { class: "inspector", attrs: { "aria-label": "Object", hidden: true } });
    this.asList = button("List", () => this.list(this.asList.getAttribute("aria-pressed") !== "true"), {
      class: "quiet",
      attrs: { "aria-pressed": "false", title: "Show the objects as a list" },
    });
    const zoom = (text: string, label: string, run: () => void): HTMLElement =>
      button(text, run, { class: "icon", attrs: { "aria-label": label, title: label } });
    const tools = h(
      "div",
      { class: "tools" },
      this.asList,
      zoom("−", "Zoom out", () => this.view.zoom(1 / 1.25)),
      zoom("+", "Zoom in", () => this.view.zoom(1.25)),
      zoom("⤢", "Fit", () => this.view.fit()),
    );
    const filters = [this.failing, this.states, this.families, this.text, this.all];
    this.filters = h("div", { class: "filters", attrs: { role: "search", "aria-label": "Objects", hidden: true } }, ...filters);
    this.canvas.append(this.empty, tree);
    this.sets = new LineSets((nodes) => this.view.mark(nodes), (node, path) => this.choose(node, false, path));
    this.element = h("div", { class: "stage" }, h("div", { class: "stage-bar" }, this.words, tools), this.filters, this.sets.element, this.canvas, inspector);
    this.view = new GraphView(this.canvas, (id) => this.choose(id), (id) => this.toggle(id));
    this.tree = new TreeView(tree, (id) => this.point(id), (id) => this.choose(id, true), (id) => this.toggle(id));
    this.inspector = new Inspector(inspector, jump, mark, () => {
      this.choose(null);
      this.tree.focus();
    });
    // A click on a card leaves the focus where it was.
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && document.activeElement === document.body) this.choose(null);
    });
  }

  /** Shows a graph and says which documents it comes from; `nothing` is the text in place of an empty one. */
  show(graph: Graph, documents: readonly Document[], nothing: string, moment?: Moment): void {
    this.graph = graph;
    this.documents = documents;
    this.moment = moment;
    this.nothing = nothing;
    this.draw();
    const still = graph.nodes.some((node) => node.id === this.selected);
    this.inspect(still ? this.selected : null);
    this.showLine();
  }

  /** Follows the cursor: `null` where the graph is not that of the editor's documents. */
  follow(line: Line | null): void {
    this.line = line;
    this.showLine();
  }

  private showLine(): void {
    if (!this.line) this.sets.clear();
    else void this.sets.show(this.line, this.graph, this.documents).catch(() => this.sets.clear());
  }

  /** Says that an answer is on its way, once it takes longer than one notices. */
  async whileLoading<T>(answer: Promise<T>): Promise<T> {
    this.loading++;
    this.wait();
    try {
      return await answer;
    } finally {
      this.loading--;
      this.wait();
    }
  }

  private wait(): void {
    this.element.setAttribute("aria-busy", String(this.loading > 0));
    if (this.loading && !this.graph.nodes.length) this.empty.textContent = "Asking the hooks what the manifests become…";
  }

  /** Shows what the filter keeps, folded by resource. */
  private draw(): void {
    const { graph, opened } = this;
    const filter = { state: this.states.value as Node["state"] | "", family: this.families.value, text: this.text.value.trim().toLowerCase() };
    const filtered = Object.values(filter).some(Boolean);
    const shown = folded(graph, filter, opened);
    this.shown = shown;
    this.filters.hidden = graph.nodes.length <= FOLDED_ABOVE && !filtered;
    this.all.hidden = !filtered;
    this.failing.setAttribute("aria-pressed", String(filter.state === "failing"));
    const { kept, all } = shown.count;
    replace(this.words, ...(filtered ? [`${kept} of ${all} resources`] : legend(graph.nodes)));
    const unmatched = filtered ? "No object is like that." : this.nothing;
    this.empty.textContent = shown.nodes.length ? "" : graph.nodes.length ? unmatched : this.nothing;
    this.view.show(shown);
    this.tree.show(shown);
    this.tree.mark(this.selected);
  }

  private toggle(id: string): void {
    this.opened.set(id, !this.shown.folds.get(id)?.open);
    this.draw();
    this.view.reveal(id);
  }

  private onlyFailing(): void {
    this.states.value = this.states.value === "failing" ? "" : "failing";
    this.draw();
  }

  private clear(): void {
    for (const control of [this.states, this.families, this.text]) control.value = "";
    this.text.focus();
    this.draw();
  }

  /** Closes the inspector. */
  close(): void {
    this.choose(null);
  }

  recolour(): void {
    this.view.recolour();
  }

  fit(): void {
    this.view.fit();
  }

  private list(shown: boolean): void {
    this.asList.setAttribute("aria-pressed", String(shown));
    this.canvas.classList.toggle("listed", shown);
  }

  private point(id: string): void {
    this.view.select(id);
    this.tree.mark(id);
  }

  /** Opens an object, at one of its values where a path is given. */
  private choose(id: string | null, focus = false, path = ""): void {
    this.inspect(id);
    if (path) this.inspector.showValue(path);
    if (focus) this.inspector.focus();
    this.view.select(id);
  }

  private inspect(id: string | null): void {
    this.selected = id;
    this.tree.mark(id);
    this.inspector.set(this.graph.nodes.find((node) => node.id === id) ?? null, this.documents, this.moment);
    if (id === null) this.view.select(null);
  }
}

function choice(name: string, all: string, values: readonly (readonly [string, string])[], run: () => void): HTMLSelectElement {
  const options = [["", all] as const, ...values].map(([value, text]) => h("option", { attrs: { value } }, text));
  return h("select", { attrs: { "aria-label": name }, on: { change: run } }, ...options);
}
