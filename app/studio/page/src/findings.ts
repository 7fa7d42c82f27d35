/** The findings as a list, by file where there are several: what is wrong, where, and a button for the correction. */

import { button, h, replace } from "./dom.js";
import type { PlacedFinding, Correction } from "./types.js";

const LEVELS: readonly [PlacedFinding["level"], string, string][] = [
  ["error", "error", "errors"],
  ["warning", "warning", "warnings"],
  ["advice", "advice", "advice"],
];

export function counted(findings: readonly PlacedFinding[]): string {
  const parts = LEVELS.map(([level, one, many]) => {
    const count = findings.filter((finding) => finding.level === level).length;
    return count ? `${count} ${count === 1 ? one : many}` : "";
  });
  return parts.filter(Boolean).join(", ") || "No findings";
}

export function list(
  host: HTMLElement,
  findings: readonly PlacedFinding[],
  jump: (document: string, line: number, column: number) => void,
  fix: (finding: PlacedFinding, fix: Correction) => void,
): void {
  const entries = (of: readonly PlacedFinding[]): HTMLElement[] => of.map((finding) => entry(finding, jump, fix));
  const files = [...new Set(findings.map(({ document }) => document))];
  if (files.length < 2) return replace(host, ...entries(findings));
  const groups = files.map((file) => {
    const own = findings.filter(({ document }) => document === file);
    return h("li", { class: "finding-file" }, h("h3", {}, `${file}: ${counted(own)}`), h("ul", {}, ...entries(own)));
  });
  replace(host, ...groups);
}

function entry(
  finding: PlacedFinding,
  jump: (document: string, line: number, column: number) => void,
  fix: (finding: PlacedFinding, fix: Correction) => void,
): HTMLElement {
  const { document, line, column, level, id, help, path, message } = finding;
  return h(
    "li",
    { class: `finding ${level}` },
    h("span", { class: "level" }, level),
    h(
      "div",
      { class: "finding-text" },
      h("p", {}, path ? h("code", {}, path) : null, path ? " " : null, message),
      button(`${document}:${line}:${column}`, () => jump(document, line, column), { class: "link" }),
      " ",
      h("a", { class: "muted", attrs: { href: help, target: "_blank", rel: "noreferrer" } }, id),
    ),
    h("div", { class: "fixes" }, ...(finding.fixes ?? []).map((one) => button(one.title, () => fix(finding, one), { class: "fix" }))),
  );
}
