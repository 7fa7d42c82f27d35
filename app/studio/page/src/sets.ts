/** What the line of the cursor sets: values of children, on their cards and in a line above the graph. */

import * as api from "./api.js";
import { button, h, replace } from "./dom.js";
import type { Document, Graph, Node, ValueOrigin } from "./types.js";

/** Values that are named; the cards show where the others are. */
const NAMED = 3;
/** Readers of one object that are asked; a BackendRuntime may have hundreds. */
const READERS = 6;

/** A line of a document; it counts from 1. */
export interface Line {
  document: string;
  line: number;
}

export class LineSets {
  readonly element = h("div", { class: "sets", attrs: { role: "status", hidden: true } });
  private readonly latest = new api.Latest();
  private readonly answers = new Map<string, readonly ValueOrigin[]>();
  private asked: readonly Document[] = [];

  constructor(
    private readonly mark: (nodes: ReadonlySet<string>) => void,
    private readonly open: (node: string, path: string) => void,
  ) {}

  /** Shows what a line of these documents sets in this graph of them. */
  async show({ document, line }: Line, graph: Graph, documents: readonly Document[]): Promise<void> {
    const owner = written(graph, document, line);
    if (!owner) return this.clear();
    if (documents !== this.asked) this.answers.clear();
    this.asked = documents;
    const found: ValueOrigin[] = [];
    for (const parent of makers(graph, owner)) {
      const origins = this.answers.get(parent.id) ?? (await this.latest.run((signal) => api.origins({ documents, node: parent.id }, signal)));
      if (origins === undefined) return;
      this.answers.set(parent.id, origins);
      found.push(...origins.filter((origin) => origin.document === document && origin.line === line));
    }
    this.list(line, found, graph);
  }

  clear(): void {
    this.latest.cancel();
    this.element.hidden = true;
    this.mark(new Set());
  }

  private list(line: number, found: readonly ValueOrigin[], graph: Graph): void {
    const placed = found.flatMap((origin) => {
      const [object, path] = [origin.path.split(" ", 1)[0] ?? "", origin.path.slice(origin.path.indexOf(" ") + 1)];
      const node = graph.nodes.find(({ role, kind, name }) => role === "child" && `${kind}/${name}` === object);
      return node ? [{ node, path, value: origin.value }] : [];
    });
    this.mark(new Set(placed.map(({ node }) => node.id)));
    this.element.hidden = !placed.length;
    const values = placed.length === 1 ? "1 value" : `${placed.length} values`;
    const more = placed.length > NAMED ? h("span", { class: "muted" }, `and ${placed.length - NAMED} more`) : null;
    const buttons = placed.slice(0, NAMED).map(({ node, path, value }) =>
      button(`${node.kind} ${path} = ${JSON.stringify(value)}`, () => this.open(node.id, path), { class: "link", attrs: { title: "Show who set it" } }),
    );
    replace(this.element, h("strong", {}, `Line ${line} sets ${values}:`), ...buttons, more);
  }
}

/** The object that is written at a line. */
function written(graph: Graph, document: string, line: number): Node | undefined {
  const above = graph.nodes.filter((node) => node.document === document && node.line !== null && node.line !== undefined && node.line <= line);
  return above.toSorted((one, other) => (other.line ?? 0) - (one.line ?? 0))[0];
}

/** The resources that make something of an object: itself, and those that read it. */
function makers(graph: Graph, owner: Node): Node[] {
  const readers = new Set(graph.edges.filter(({ target }) => target === owner.id).map(({ source }) => source));
  const makers = graph.nodes.filter(({ id, role, state }) => role === "parent" && state !== "refused" && (id === owner.id || readers.has(id)));
  return makers.slice(0, READERS);
}
