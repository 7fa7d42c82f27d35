/** Where the cards of a graph stand: what belongs together in columns, from what is read to pods, one such part beside the next. */

import type { FoldedGraph } from "./resources.js";
import type { Edge, Graph, Node } from "./types.js";

export interface Point {
  x: number;
  y: number;
}

export const CARD = { width: 222, height: 58 };
export const GAP = { column: 36, row: 16, wrapped: 16, part: 28, indent: 22 };
/** More cards than this in a column become several columns side by side. */
const TALL = 14;
/** A view without room for two columns has one. */
const NARROW = 2 * CARD.width + GAP.column;
/** With more resources than this, those of a namespace stand together below its name. */
const GROUPED_ABOVE = 12;
const HEADING = 40;
const SWEEPS = 3;
/** An object with more readers than this joins no parts, and its lines are drawn when it or a reader is chosen. */
const READERS = 4;

/** The title of a namespace's part of the graph. */
export interface Heading extends Point {
  namespace: string;
  resources: number;
  width: number;
}

export interface Layout {
  /** The middle of each node's card. */
  places: Map<string, Point>;
  headings: Heading[];
}

/** What belongs together goes into rows of this width; many resources of several namespaces, below a heading for each. */
export function layout(graph: FoldedGraph, width: number): Layout {
  const places = new Map<string, Point>();
  const headings: Heading[] = [];
  const all = parts(graph);
  const groups = graph.count.all > GROUPED_ABOVE ? byNamespace(all) : new Map([["", all]]);
  let top = 0;
  for (const [namespace, group] of groups) {
    if (groups.size > 1) {
      const nodes = group.flatMap((part) => part.nodes);
      const resources = nodes.filter(({ role }) => role === "parent").length || nodes.length;
      headings.push({ namespace, resources, x: -CARD.width / 2, y: top - CARD.height / 2, width: Math.max(width, CARD.width) });
      top += HEADING;
    }
    top = packed(group, width, top, places);
  }
  return { places, headings };
}

/** Places parts in rows from `top` down: each in the first row that has room for it. The answer is the end of the last. */
function packed(group: readonly Graph[], width: number, top: number, places: Map<string, Point>): number {
  const rows: { x: number; y: number; height: number }[] = [];
  let bottom = top;
  for (const part of group) {
    const columns = ordered(stacked(part), part);
    const placed = width < NARROW ? indented(columns) : columned(columns);
    const size = extent([...placed.values()]);
    const [wide, high] = [size.right - size.left, size.bottom - size.top];
    let row = rows.find(({ x, height }) => x + wide <= width && high <= height);
    if (!row) {
      const last = rows.at(-1);
      row = last && last.x + wide <= width ? last : { x: 0, y: bottom, height: 0 };
      if (row !== last) rows.push(row);
    }
    for (const [id, { x, y }] of placed) places.set(id, { x: row.x + x - size.left, y: row.y + y - size.top });
    row.x += wide + GAP.column;
    row.height = Math.max(row.height, high);
    bottom = Math.max(bottom, row.y + row.height + GAP.part);
  }
  return bottom;
}

/** Parts by the namespace of their first resource; those of the whole cluster come last. */
function byNamespace(all: readonly Graph[]): Map<string, Graph[]> {
  const groups = new Map<string, Graph[]>();
  for (const part of all) {
    const namespace = (part.nodes.find(({ role }) => role === "parent") ?? part.nodes[0])?.namespace ?? "";
    groups.set(namespace, [...(groups.get(namespace) ?? []), part]);
  }
  return new Map([...groups].toSorted(([one], [other]) => Number(one === "") - Number(other === "") || one.localeCompare(other)));
}

/** Objects that many others read. */
export function shared(graph: Graph): Set<string> {
  const readers = new Map<string, number>();
  for (const { target } of graph.edges) readers.set(target, (readers.get(target) ?? 0) + 1);
  const related = graph.nodes.filter(({ id, role }) => role === "related" && (readers.get(id) ?? 0) > READERS);
  return new Set(related.map(({ id }) => id));
}

function extent(points: readonly Point[]): { left: number; right: number; top: number; bottom: number } {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  return {
    left: Math.min(...xs),
    right: Math.max(...xs) + CARD.width,
    top: Math.min(...ys),
    bottom: Math.max(...ys) + CARD.height,
  };
}

/** Graphs that no line joins, except lines to what is shared; in the order of their first nodes. */
function parts(graph: Graph): Graph[] {
  const common = shared(graph);
  const above = new Map<string, string>();
  const top = (id: string): string => {
    let at = id;
    for (let next = above.get(at); next !== undefined; next = above.get(at)) at = next;
    return at;
  };
  const joins = graph.edges.filter(({ source, target }) => !common.has(source) && !common.has(target));
  for (const { source, target } of joins) if (top(source) !== top(target)) above.set(top(target), top(source));
  const found = new Map<string, { nodes: Node[]; edges: Edge[] }>();
  for (const node of graph.nodes) {
    const part = found.get(top(node.id));
    if (part) part.nodes.push(node);
    else found.set(top(node.id), { nodes: [node], edges: [] });
  }
  for (const edge of joins) found.get(top(edge.source))?.edges.push(edge);
  return [...found.values()];
}

/** One card below the other, those of later columns further to the right. */
function indented(columns: readonly string[][]): Map<string, Point> {
  const cards = columns.filter((column) => column.length).flatMap((column, level) => column.map((id) => ({ id, level })));
  return new Map(cards.map(({ id, level }, row) => [id, { x: level * GAP.indent, y: row * (CARD.height + GAP.row) }]));
}

function columned(columns: readonly string[][]): Map<string, Point> {
  const points = new Map<string, Point>();
  const tallest = Math.max(...columns.map((column) => Math.min(column.length, TALL)), 1);
  const height = tallest * (CARD.height + GAP.row);
  let x = 0;
  for (const column of columns) {
    const wraps = Math.max(Math.ceil(column.length / TALL), 1);
    const rows = Math.ceil(column.length / wraps);
    const top = (height - rows * (CARD.height + GAP.row)) / 2;
    column.forEach((id, index) => {
      const wrap = Math.floor(index / rows);
      points.set(id, {
        x: x + wrap * (CARD.width + GAP.wrapped),
        y: top + (index % rows) * (CARD.height + GAP.row),
      });
    });
    if (column.length) x += wraps * (CARD.width + GAP.wrapped) - GAP.wrapped + GAP.column;
  }
  return points;
}

/** Ids by column. A parent that another one reads stands to its left; children that have pods stand next to those. */
function stacked(graph: Graph): string[][] {
  const roles = new Map(graph.nodes.map((node) => [node.id, node.role]));
  const runs = new Set(graph.edges.filter((edge) => roles.get(edge.target) === "pod").map((edge) => edge.source));
  const read = parentsRead(graph, roles);
  const children = graph.nodes.filter((node) => node.role === "child");
  const split = children.length > 5 && children.some((node) => runs.has(node.id));
  const column = (node: Node): number => {
    if (node.role === "related") return 0;
    if (node.role === "parent") return read.has(node.id) ? 1 : 2;
    if (node.role === "child") return split && runs.has(node.id) ? 4 : 3;
    return 5;
  };
  const columns: string[][] = [[], [], [], [], [], []];
  for (const node of graph.nodes) columns[column(node)]?.push(node.id);
  return columns;
}

function parentsRead(graph: Graph, roles: ReadonlyMap<string, string>): Set<string> {
  const between = graph.edges.filter(({ source, target }) => roles.get(source) === "parent" && roles.get(target) === "parent");
  const readers = new Set(between.map((edge) => edge.source));
  return new Set(between.map((edge) => edge.target).filter((id) => !readers.has(id)));
}

/** Each column in the order of what its cards are joined to in the columns around it, so that few lines cross. */
function ordered(columns: string[][], graph: Graph): string[][] {
  const joined = new Map<string, string[]>();
  const join = (one: string, other: string): void => void joined.set(one, [...(joined.get(one) ?? []), other]);
  for (const { source, target } of graph.edges) {
    join(source, target);
    join(target, source);
  }
  let present = columns;
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const places = new Map<string, number>();
    for (const column of present) column.forEach((id, index) => places.set(id, (index + 0.5) / column.length));
    const middle = (id: string): number => {
      const around = (joined.get(id) ?? []).map((other) => places.get(other) ?? 0.5);
      return around.length ? around.reduce((sum, place) => sum + place, 0) / around.length : (places.get(id) ?? 0.5);
    };
    present = present.map((column) => {
      const weights = new Map(column.map((id) => [id, middle(id)]));
      return column.toSorted((one, other) => (weights.get(one) ?? 0) - (weights.get(other) ?? 0));
    });
  }
  return present;
}
