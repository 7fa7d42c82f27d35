/** A graph with all that belongs to it: canvas, tree, legend, zoom, and the inspector of the chosen object. */

import { button, h } from "./dom.js";
import { GraphView } from "./graph.js";
import { Inspector } from "./inspector.js";
import { pill, summary } from "./states.js";
import { TreeView } from "./tree.js";
import type { Document, Graph } from "./types.js";

export class Stage {
  readonly element: HTMLElement;
  private readonly view: GraphView;
  private readonly tree: TreeView;
  private readonly inspector: Inspector;
  private readonly words = h("p", { class: "summary", attrs: { role: "status" } });
  private readonly canvas = h("div", { class: "graph", attrs: { role: "group", "aria-label": "Graph" } });
  private readonly empty = h("p", { class: "empty" });
  private readonly asList: HTMLButtonElement;
  private graph: Graph = { nodes: [], edges: [] };
  private documents: readonly Document[] = [];
  private selected: string | null = null;

  constructor(jump: (document: string, line: number, column?: number) => void) {
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
    const states = (["ready", "waiting", "failing", "absent"] as const).map((state) => pill(state));
    const legend = h("div", { class: "legend", attrs: { "aria-hidden": "true" } }, ...states);
    this.canvas.append(this.empty, tree);
    this.element = h("div", { class: "stage" }, h("div", { class: "stage-bar" }, this.words, legend, tools), this.canvas, inspector);
    this.view = new GraphView(this.canvas, (id) => this.choose(id));
    this.tree = new TreeView(tree, (id) => this.point(id), (id) => this.choose(id, true));
    this.inspector = new Inspector(inspector, jump, () => {
      this.choose(null);
      this.tree.focus();
    });
  }

  /** Shows a graph and says which documents it comes from; `nothing` is the text in place of an empty one. */
  show(graph: Graph, documents: readonly Document[], nothing: string): void {
    this.graph = graph;
    this.documents = documents;
    this.words.textContent = summary(graph);
    this.empty.textContent = graph.nodes.length ? "" : nothing;
    this.view.show(graph);
    this.tree.show(graph);
    const still = graph.nodes.some((node) => node.id === this.selected);
    this.inspect(still ? this.selected : null);
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

  private choose(id: string | null, focus = false): void {
    this.inspect(id);
    if (focus) this.inspector.focus();
    this.view.select(id);
  }

  private inspect(id: string | null): void {
    this.selected = id;
    this.tree.mark(id);
    this.inspector.set(this.graph.nodes.find((node) => node.id === id) ?? null, this.documents);
    if (id === null) this.view.select(null);
  }
}
