/** Where the cards of a graph stand: what belongs together in columns, from what is read to pods, one such part beside the next. */

import type { Edge, Graph, Node } from "./types.js";

export interface Point {
  x: number;
  y: number;
}

export const CARD = { width: 222, height: 58 };
export const GAP = { column: 44, row: 16, wrapped: 16, part: 32, indent: 22 };
/** More cards than this in a column become several columns side by side. */
const TALL = 14;
/** A view without room for two columns has one. */
const NARROW = 2 * CARD.width + GAP.column;
const SWEEPS = 3;
/** An object with more readers than this joins no parts, and its lines are drawn when it or a reader is chosen. */
const READERS = 4;

/** The middle of each node's card; parts of the graph go into rows of this width. */
export function layout(graph: Graph, width: number): Map<string, Point> {
  const points = new Map<string, Point>();
  const next = { x: 0, y: 0 };
  let bottom = 0;
  for (const part of parts(graph)) {
    const columns = ordered(stacked(part), part);
    const placed = width < NARROW ? indented(columns) : columned(columns);
    const size = extent([...placed.values()]);
    if (next.x && next.x + size.right - size.left > width) Object.assign(next, { x: 0, y: bottom });
    for (const [id, { x, y }] of placed) points.set(id, { x: next.x + x - size.left, y: next.y + y - size.top });
    next.x += size.right - size.left + GAP.part;
    bottom = Math.max(bottom, next.y + size.bottom - size.top + GAP.part);
  }
  return points;
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
