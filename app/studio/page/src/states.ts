/** How states are told apart: a sign, a word, and a class for the colour and the border. */

import type { Node } from "./types.js";
import { h } from "./dom.js";

export const SIGNS: Record<Node["state"], string> = { ready: "✓", waiting: "…", failing: "✕", refused: "⊘", absent: "?" };
export const WORDS: Record<Node["state"], string> = { ready: "Ready", waiting: "Waiting", failing: "Failing", refused: "Refused", absent: "Absent" };

export function pill(state: Node["state"], word: string = WORDS[state]): HTMLElement {
  const sign = h("span", { attrs: { "aria-hidden": "true" } }, SIGNS[state]);
  return h("span", { class: `pill ${state}` }, sign, word);
}

/** From what needs a look first to what needs none. */
export const WORST_FIRST = ["refused", "failing", "absent", "waiting", "ready"] as const satisfies readonly Node["state"][];

/** Whether something has to be mended: `Failing only` keeps these. */
export function isWrong(state: Node["state"]): boolean {
  return state === "failing" || state === "refused";
}

function counts(nodes: readonly Node[]): [state: Node["state"], words: string][] {
  return (["refused", "failing", "waiting", "absent", "ready"] as const)
    .map((state) => [state, nodes.filter((node) => node.state === state).length] as const)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => [state, `${count} ${WORDS[state].toLowerCase()}`]);
}

function objects(nodes: readonly Node[]): string {
  return nodes.length === 1 ? "1 object" : `${nodes.length} objects`;
}

/** One sentence for these objects. */
export function summary(nodes: readonly Node[]): string {
  return nodes.length ? `${objects(nodes)}: ${counts(nodes).map(([, words]) => words).join(", ")}` : "No objects";
}

/** The same with the signs and colours of the states, as the legend of the cards. */
export function legend(nodes: readonly Node[]): HTMLElement[] {
  const words = h("span", {}, nodes.length ? objects(nodes) : "No objects");
  return [words, ...counts(nodes).map(([state, text]) => pill(state, text))];
}

/** What the condition Ready of an object says. */
export function truth(ready: "True" | "False" | "Unknown"): HTMLElement {
  if (ready === "True") return pill("ready");
  return ready === "False" ? pill("failing", "Not ready") : pill("waiting", "Unknown");
}
