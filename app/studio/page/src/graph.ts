/** The graph: Cytoscape draws lines and answers the mouse, and cards of HTML stand on its nodes where they can be read. */

import cytoscape, { type Core, type ElementDefinition, type StylesheetJson } from "cytoscape";
import { h, middle, replace } from "./dom.js";
import { CARD, GAP, layout, shared, type Heading, type Point } from "./layout.js";
import { hidden, type FoldedGraph } from "./resources.js";
import { pill, SIGNS, summary } from "./states.js";
import type { Node } from "./types.js";

/** Below this the text of a card is too small to read: only its name is drawn, larger, on its colour and shape. */
const READABLE = 0.42;
/** A graph that would have to be smaller than this to fit begins at its upper left corner instead, as wide as the view. */
const LEGIBLE = 0.61;
/** The largest scale of such a graph, for which its parts are put beside each other. */
const COMFORTABLE = 0.8;
/** Characters of a name that is drawn large. */
const LABEL = 15;
const MARGIN = 28;
const [RIGHT, LEFT] = ["90deg", "270deg"];
/** How far a line stands off that joins two cards of one column. */
const BOW = 38;
const SHAPES: Record<Node["state"], string> = {
  ready: "round-rectangle",
  waiting: "round-hexagon",
  failing: "octagon",
  refused: "cut-rectangle",
  absent: "rectangle",
};

export class GraphView {
  private readonly core: Core;
  private readonly layer = h("div", { class: "cards", attrs: { "aria-hidden": "true" } });
  private readonly cards = new Map<string, HTMLElement>();
  private readonly canvas = h("div", { class: "canvas" });
  private graph: FoldedGraph = { nodes: [], edges: [], folds: new Map(), count: { kept: 0, all: 0 } };
  private nodes = new Map<string, Node>();
  private places = new Map<string, Point>();
  private headings: readonly Heading[] = [];
  private selected: string | null = null;
  private marked: ReadonlySet<string> = new Set();
  private shape = "";
  private moved = false;
  private queued = false;
  private carded = false;

  constructor(
    private readonly host: HTMLElement,
    select: (id: string | null) => void,
    private readonly toggle: (id: string) => void,
  ) {
    host.append(this.canvas, this.layer);
    this.core = cytoscape({
      container: this.canvas,
      layout: { name: "preset" },
      minZoom: 0.05,
      maxZoom: 1.6,
      autoungrabify: true,
      autounselectify: true,
      boxSelectionEnabled: false,
      style: this.style(),
    });
    this.core.on("tap", "node", (event) => select(event.target.id() as string));
    this.core.on("tap", (event) => event.target === this.core && select(null));
    this.core.on("mouseover", "node", (event) => this.point(event.target.id() as string));
    this.core.on("mouseout", "node", () => this.point(null));
    this.core.on("viewport", () => this.draw());
    this.core.on("dragpan scrollzoom pinchzoom", () => (this.moved = true));
    new ResizeObserver(() => {
      this.core.resize();
      if (!this.moved) {
        this.place();
        this.fit();
      }
      if (this.selected !== null) this.reveal(this.selected);
      this.draw();
    }).observe(host);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
  }

  show(graph: FoldedGraph): void {
    this.graph = graph;
    this.nodes = new Map(graph.nodes.map((node) => [node.id, node]));
    const shape = JSON.stringify([graph.nodes.map((node) => [node.id, node.role]), graph.edges]);
    if (shape !== this.shape) this.place();
    else this.core.batch(() => graph.nodes.forEach(({ id, state }) => this.core.getElementById(id).data("state", state)));
    this.clear();
    if (shape !== this.shape && !this.moved) this.fit();
    this.shape = shape;
    this.emphasise();
    this.draw();
  }

  /** Marks a node and the lines at it, and brings it into view. */
  select(id: string | null): void {
    this.selected = id;
    this.emphasise();
    if (id !== null) this.reveal(id);
    this.draw();
  }

  /** Marks the cards of these nodes. */
  mark(nodes: ReadonlySet<string>): void {
    this.marked = nodes;
    this.draw();
  }

  fit(): void {
    this.moved = false;
    if (this.core.elements().empty() || !this.host.clientWidth) return;
    const { clientWidth, clientHeight } = this.host;
    const { x1, y1: first, w, h: below } = this.core.nodes().boundingBox();
    const y1 = Math.min(first, ...this.headings.map(({ y }) => y));
    const box = { x1, y1, w, h: below + first - y1 };
    const [across, down] = [(clientWidth - 2 * MARGIN) / box.w, (clientHeight - 2 * MARGIN) / box.h];
    const whole = Math.min(across, down, 1);
    const zoom = whole >= LEGIBLE ? whole : Math.max(Math.min(across, COMFORTABLE), LEGIBLE);
    const start = (room: number, size: number): number => Math.max((room - size * zoom) / 2, MARGIN);
    const pan = { x: start(clientWidth, box.w) - box.x1 * zoom, y: start(clientHeight, box.h) - box.y1 * zoom };
    this.core.viewport({ zoom, pan });
    this.draw();
  }

  zoom(factor: number): void {
    this.moved = true;
    const middle = { x: this.host.clientWidth / 2, y: this.host.clientHeight / 2 };
    this.core.zoom({ level: this.core.zoom() * factor, renderedPosition: middle });
  }

  recolour(): void {
    this.core.style(this.style());
  }

  /** Shows all of a name that its card cuts off, and the cause, where the mouse rests. The cards see no mouse. */
  private point(id: string | null): void {
    const node = id === null ? undefined : this.nodes.get(id);
    this.canvas.classList.toggle("over", node !== undefined);
    this.canvas.title = node ? [`${node.kind} ${node.name}`, node.cause].filter(Boolean).join("\n") : "";
  }

  /** Brings a node into view. */
  reveal(id: string): void {
    const place = this.places.get(id);
    if (!place) return;
    const zoom = this.core.zoom();
    const pan = this.core.pan();
    const [x, y] = [place.x * zoom + pan.x, place.y * zoom + pan.y];
    const [halfWidth, halfHeight] = [(CARD.width / 2) * zoom + 12, (CARD.height / 2) * zoom + 12];
    const { clientWidth, clientHeight } = this.host;
    const by = {
      x: Math.max(halfWidth - x, 0) || Math.min(clientWidth - halfWidth - x, 0),
      y: Math.max(halfHeight - y, 0) || Math.min(clientHeight - halfHeight - y, 0),
    };
    if (by.x || by.y) this.core.panBy(by);
  }

  private place(): void {
    ({ places: this.places, headings: this.headings } = layout(this.graph, (this.host.clientWidth - 2 * MARGIN) / COMFORTABLE));
    this.core.batch(() => {
      this.core.elements().remove();
      this.core.add([...this.elements()]);
    });
    this.clear();
    this.emphasise();
  }

  private clear(): void {
    this.cards.clear();
    replace(this.layer, ...this.headings.map(heading));
  }

  private *elements(): Iterable<ElementDefinition> {
    for (const node of this.graph.nodes) {
      const position = this.places.get(node.id) ?? { x: 0, y: 0 };
      const classes = this.carded ? "carded" : "";
      yield { group: "nodes", data: { id: node.id, state: node.state, name: abridged(node.name) }, classes, position: { ...position } };
    }
    const common = shared(this.graph);
    for (const [index, { source, target, label }] of this.graph.edges.entries()) {
      if (!this.nodes.has(source) || !this.nodes.has(target)) continue;
      const [from, to] = [this.places.get(source), this.places.get(target)];
      const classes = common.has(target) ? "shared" : "";
      if (from && to) yield { group: "edges", data: { id: `edge ${index}`, source, target, label, ...curve(from, to) }, classes };
    }
  }

  private emphasise(): void {
    this.core.batch(() => {
      this.core.edges().removeClass("near");
      if (this.selected !== null) this.core.getElementById(this.selected).connectedEdges().addClass("near");
    });
  }

  /** Puts cards where nodes can be seen and read; once per frame, however often it is asked. */
  private draw(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      const [zoom, pan] = [this.core.zoom(), this.core.pan()];
      this.layer.style.transform = `translate(${pan.x}px, ${pan.y}px) scale(${zoom})`;
      if (this.carded !== zoom >= READABLE) {
        this.carded = zoom >= READABLE;
        this.core.nodes().toggleClass("carded", this.carded);
      }
      const extent = this.core.extent();
      const seen = new Set<string>();
      if (zoom >= READABLE) {
        for (const [id, { x, y }] of this.places) {
          if (x + CARD.width / 2 < extent.x1 || x - CARD.width / 2 > extent.x2) continue;
          if (y + CARD.height / 2 < extent.y1 || y - CARD.height / 2 > extent.y2) continue;
          seen.add(id);
          const { classList } = this.card(id, x, y);
          classList.toggle("selected", id === this.selected);
          classList.toggle("set", this.marked.has(id));
        }
      }
      for (const [id, card] of this.cards) {
        if (seen.has(id)) continue;
        card.remove();
        this.cards.delete(id);
      }
    });
  }

  private card(id: string, x: number, y: number): HTMLElement {
    const present = this.cards.get(id);
    if (present) return present;
    const node = this.nodes.get(id)!;
    const card = h(
      "div",
      { class: `card ${node.state} ${node.role}`, attrs: { "data-node": id } },
      h("span", { class: "card-kind" }, node.kind),
      pill(node.state),
      h("span", { class: "card-name" }, middle(node.name), this.folding(id)),
    );
    card.style.left = `${x - CARD.width / 2}px`;
    card.style.top = `${y - CARD.height / 2}px`;
    this.layer.append(card);
    this.cards.set(id, card);
    return card;
  }

  /** How many objects a card stands for; a click opens and closes it. The tree does the same for the keyboard. */
  private folding(id: string): HTMLElement | null {
    const fold = this.graph.folds.get(id);
    if (!fold) return null;
    const attrs = { title: `${summary(fold.members)}. ${fold.open ? "Fold" : "Open"}` };
    const text = fold.open ? "−" : `+${fold.members.length - 1}`;
    const worst = hidden(fold);
    const sign = worst && h("span", { class: `card-hidden ${worst.state}` }, SIGNS[worst.state]);
    return h("span", { class: "card-fold", attrs, on: { click: () => this.toggle(id) } }, sign, text);
  }

  /** Cytoscape knows no custom properties: it is given colours as they are in the page's theme now. */
  private style(): StylesheetJson {
    const probe = h("span", { attrs: { hidden: true } });
    document.body.append(probe);
    const colour = (name: string): string => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    const states = Object.entries(SHAPES).map(([state, shape]) => ({
      selector: `node[state = "${state}"]`,
      style: {
        shape: shape as cytoscape.Css.NodeShape,
        "background-color": colour(`${state}-soft`),
        "border-color": colour(state),
        "border-style": (state === "absent" ? "dashed" : "solid") as cytoscape.Css.LineStyle,
      },
    }));
    const sheet = [
      {
        selector: "node",
        style: {
          width: CARD.width,
          height: CARD.height,
          "border-width": 3,
          label: "data(name)",
          color: colour("text"),
          "font-size": 28,
          "font-family": "system-ui, sans-serif",
          "text-valign": "center",
          "text-wrap": "ellipsis",
          "text-max-width": `${CARD.width - 16}px`,
          "min-zoomed-font-size": 5,
        },
      },
      ...states,
      { selector: "node.carded", style: { "background-opacity": 0, "border-opacity": 0, label: "" } },
      {
        selector: "edge",
        style: {
          width: 1.5,
          "curve-style": "unbundled-bezier",
          "edge-distances": "endpoints",
          "control-point-weights": "data(weights)",
          "control-point-distances": "data(distances)",
          "source-endpoint": "data(from)",
          "target-endpoint": "data(to)",
          "line-color": colour("edge"),
          "target-arrow-color": colour("edge"),
          "target-arrow-shape": "triangle",
          "arrow-scale": 0.8,
        },
      },
      { selector: "edge.shared", style: { opacity: 0 } },
      {
        selector: "edge.near",
        style: {
          width: 2,
          opacity: 1,
          "line-color": colour("accent"),
          "target-arrow-color": colour("accent"),
          label: "data(label)",
          color: colour("text"),
          "font-size": 11,
          "font-family": "system-ui, sans-serif",
          "text-background-color": colour("canvas"),
          "text-background-opacity": 1,
          "text-background-padding": "3px",
          "z-index": 2,
        },
      },
    ] as StylesheetJson;
    probe.remove();
    return sheet;
  }
}

/** The name of a namespace, above its cards. */
function heading({ namespace, resources, x, y, width }: Heading): HTMLElement {
  const count = h("span", { class: "kind" }, resources === 1 ? "1 resource" : `${resources} resources`);
  const element = h("div", { class: "namespace" }, middle(namespace || "cluster-wide"), count);
  element.style.left = `${x}px`;
  element.style.top = `${y}px`;
  element.style.width = `${width}px`;
  return element;
}

/** A name of which the middle is left out where it is too long: names of one service differ at their ends. */
function abridged(name: string): string {
  const end = Math.floor(LABEL / 2);
  return name.length <= LABEL ? name : `${name.slice(0, LABEL - end - 1)}…${name.slice(-end)}`;
}

/** A line from the side of a card to the side of another that leaves and arrives level; beside cards above each other. */
function curve(from: Point, to: Point): Record<string, unknown> {
  const dy = to.y - from.y;
  if (Math.abs(to.x - from.x) < CARD.width) return { from: LEFT, to: LEFT, weights: [0.5], distances: [Math.sign(dy) * BOW] };
  const ahead = to.x > from.x;
  const dx = to.x - from.x + (ahead ? -CARD.width : CARD.width);
  const length = Math.hypot(dx, dy);
  // The corners of a step that turns in the first gap, as cytoscape wants them: along the line, and off it.
  const turn = Math.sign(dx) * Math.min(Math.abs(dx) / 2, GAP.column / 2);
  return {
    from: ahead ? RIGHT : LEFT,
    to: ahead ? LEFT : RIGHT,
    weights: [(turn * dx) / length ** 2, (turn * dx + dy * dy) / length ** 2],
    distances: [(-turn * dy) / length, ((dx - turn) * dy) / length],
  };
}
