/** Where the cards of a graph stand: in columns, from what is read over parents and children to pods. */

import type { Graph, Node } from "./types.js";

export interface Point {
  x: number;
  y: number;
}

export const CARD = { width: 200, height: 58 };
export const GAP = { column: 60, row: 16, wrapped: 16 };
/** More cards than this in a column become several columns side by side. */
const TALL = 14;
const SWEEPS = 3;

/** The middle of each node's card. */
export function layout(graph: Graph): Map<string, Point> {
  const columns = ordered(stacked(graph), graph);
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
