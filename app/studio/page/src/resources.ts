/** Objects by the resource that they belong to: what is folded into one card, and what a filter keeps. */

import { isWrong, WORST_FIRST } from "./states.js";
import type { Edge, Graph, Node } from "./types.js";

/** More objects than this are folded by resource until one opens them. */
export const FOLDED_ABOVE = 24;
const OWNING: ReadonlySet<Edge["label"]> = new Set(["makes", "runs"]);

export interface Filter {
  state: Node["state"] | "";
  family: string;
  text: string;
}

/** A resource with more than one object. */
export interface Fold {
  open: boolean;
  members: readonly Node[];
}

/** The worst state of what a closed resource hides and how often it is there, unless its own card is as bad. */
export function hidden({ open, members }: Fold): { state: Node["state"]; count: number } | null {
  const states = members.map(({ state }) => state);
  const worst = WORST_FIRST.find((state) => states.includes(state));
  if (open || !worst || worst === "ready" || worst === states[0]) return null;
  return { state: worst, count: states.filter((state) => state === worst).length };
}

/** A graph in which a folded resource is one node. */
export interface FoldedGraph extends Graph {
  /** By the id of the node that stands for the resource. */
  folds: ReadonlyMap<string, Fold>;
  /** How many resources the filter keeps, and how many there are. */
  count: { kept: number; all: number };
}

/** The nodes of each resource by the id of the node that stands for it, which is the first of them. */
type Resources = ReadonlyMap<string, readonly Node[]>;

/** The resources that have an object of this state, of this family and with this text; `opened` overrides what is folded. */
export function folded(graph: Graph, filter: Filter, opened: ReadonlyMap<string, boolean>): FoldedGraph {
  const roots = rootsOf(graph);
  const all = grouped(graph, roots);
  const resources = new Map([...all].filter(([, members]) => matches(members, filter)));
  const objects = [...resources.values()].reduce((sum, members) => sum + members.length, 0);
  const folds = new Map<string, Fold>();
  const standIns = new Map<string, string>();
  for (const [root, members] of resources) {
    const open = members.length === 1 || (opened.get(root) ?? objects <= FOLDED_ABOVE);
    if (members.length > 1) folds.set(root, { open, members });
    for (const { id } of members) standIns.set(id, open ? id : root);
  }
  const nodes = graph.nodes.filter(({ id }) => standIns.get(id) === id);
  return { nodes, edges: joined(graph.edges, standIns), folds, count: { kept: counted(resources), all: counted(all) } };
}

function counted(resources: Resources): number {
  return [...resources.values()].filter(([first]) => first?.role === "parent").length;
}

/** Lines between what stands for the objects, each once. */
function joined(edges: readonly Edge[], standIns: ReadonlyMap<string, string>): Edge[] {
  const found = new Map<string, Edge>();
  for (const edge of edges) {
    const [source, target] = [standIns.get(edge.source), standIns.get(edge.target)];
    if (source === undefined || target === undefined || source === target) continue;
    found.set(`${source}\n${target}`, { source, target, label: edge.label });
  }
  return [...found.values()];
}

function grouped(graph: Graph, roots: ReadonlyMap<string, string>): Resources {
  const members = new Map<string, Node[]>();
  const place = (node: Node): void => {
    const root = roots.get(node.id) ?? node.id;
    const group = members.get(root);
    if (group) group.push(node);
    else members.set(root, [node]);
  };
  for (const node of graph.nodes) if (roots.get(node.id) === node.id) place(node);
  for (const node of graph.nodes) if (roots.get(node.id) !== node.id) place(node);
  return members;
}

/** A created object belongs to what created it; one that is read, to its reader if there is only one. */
function rootsOf(graph: Graph): Map<string, string> {
  const roles = new Map(graph.nodes.map(({ id, role }) => [id, role]));
  const makers = new Map<string, string>();
  const readers = new Map<string, Set<string>>();
  for (const { source, target, label } of graph.edges) {
    if (!roles.has(source)) continue;
    const role = roles.get(target);
    if (OWNING.has(label)) makers.set(target, source);
    else if (role === "related") readers.set(target, (readers.get(target) ?? new Set()).add(source));
  }
  const maker = (id: string): string => {
    const above = makers.get(id);
    return above === undefined ? id : maker(above);
  };
  const root = ({ id, role }: Node): string => {
    if (role !== "related") return maker(id);
    const resources = new Set([...(readers.get(id) ?? [])].map(maker));
    return resources.size === 1 ? [...resources][0]! : id;
  };
  return new Map(graph.nodes.map((node) => [node.id, root(node)]));
}

function matches(members: readonly Node[], { state, family, text }: Filter): boolean {
  const has = (test: (node: Node) => boolean): boolean => members.some(test);
  return (
    (!state || has((node) => node.state === state || (state === "failing" && isWrong(node.state)))) &&
    (!family || has((node) => node.family === family)) &&
    (!text || has(({ kind, namespace, name, cause }) => `${kind} ${namespace}/${name} ${cause}`.toLowerCase().includes(text)))
  );
}
