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

/** One sentence for these objects. */
export function summary(nodes: readonly Node[]): string {
  const counts = (["refused", "failing", "waiting", "absent", "ready"] as const)
    .map((state) => [nodes.filter((node) => node.state === state).length, WORDS[state].toLowerCase()] as const)
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  const objects = nodes.length === 1 ? "1 object" : `${nodes.length} objects`;
  return nodes.length ? `${objects}: ${counts.join(", ")}` : "No objects";
}

/** What the condition Ready of an object says. */
export function truth(ready: "True" | "False" | "Unknown"): HTMLElement {
  if (ready === "True") return pill("ready");
  return ready === "False" ? pill("failing", "Not ready") : pill("waiting", "Unknown");
}
