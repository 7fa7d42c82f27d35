/** A comparison as text: one block for each child that changes, with its fields and what the change does. */

import { button, h } from "./dom.js";
import type { Comparison, FieldChange, FieldEdit, ObjectChange } from "./types.js";

const SIGNS: Record<ObjectChange["action"], string> = { create: "+", delete: "−", change: "~" };
/** How much an effect is felt: it decides the colour, and the words say the rest. */
const WEIGHT: Record<ObjectChange["effect"], "calm" | "notable" | "grave"> = {
  none: "calm",
  "in place": "calm",
  kept: "calm",
  starts: "notable",
  scales: "notable",
  "rolls pods": "grave",
  recreates: "grave",
  stops: "grave",
  "deletes data": "grave",
};

/** More changed lines, or fields of an object, than this are closed. */
const FEW = 12;

type Jump = (document: string, line: number, column: number) => void;

export function comparison({ edits, objects, summary }: Comparison, jump: Jump): HTMLElement {
  return h(
    "div",
    { class: "changes" },
    h("p", { class: "changes-summary", attrs: { role: "status" } }, summary),
    edits.length ? lines(edits, jump) : null,
    ...objects.map(block),
  );
}

/** The changed lines, closed where they would push the changes out of sight. */
function lines(edits: readonly FieldEdit[], jump: Jump): HTMLElement {
  const list = h("ul", { class: "edits", attrs: { "aria-label": "Changed lines" } }, ...edits.map((one) => edited(one, jump)));
  return edits.length <= FEW ? list : h("details", { class: "many" }, h("summary", {}, `${edits.length} changed lines`), list);
}

function edited({ document, line, column, object, path, before, after }: FieldEdit, jump: Jump): HTMLElement {
  return h(
    "li",
    {},
    button(`${document}:${line}`, () => jump(document, line, column), { class: "link" }),
    " ",
    path ? h("code", {}, path) : `${object} is new`,
    path ? `: ${shown(before)} → ${shown(after)}` : null,
  );
}

function block(change: ObjectChange): HTMLElement {
  const columns = ["Field", "Before", "After", "Effect"].map((name) => h("th", { attrs: { scope: "col" } }, name));
  return h(
    "details",
    { class: `change ${change.action}`, attrs: { open: change.fields.length > 0 && change.fields.length <= FEW } },
    h(
      "summary",
      {},
      h("span", { class: "sign", attrs: { "aria-label": change.action } }, SIGNS[change.action]),
      h("span", { class: "change-name" }, h("span", { class: "kind" }, change.kind), " ", change.name),
      effect(change.effect),
      h("span", { class: "words" }, change.words),
    ),
    change.fields.length
      ? h("table", {}, h("thead", {}, h("tr", {}, ...columns)), h("tbody", {}, ...change.fields.map(line)))
      : null,
  );
}

function line(field: FieldChange): HTMLElement {
  return h(
    "tr",
    {},
    h("th", { class: "mono", attrs: { scope: "row" } }, field.path),
    h("td", { class: "mono gone" }, shown(field.before)),
    h("td", { class: "mono new" }, shown(field.after)),
    h("td", {}, effect(field.effect)),
  );
}

function effect(name: ObjectChange["effect"]): HTMLElement {
  return h("span", { class: `effect ${WEIGHT[name]}` }, name);
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return "—";
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}
