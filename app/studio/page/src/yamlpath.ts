/**
 * Where in a YAML document a position is, from indentation alone: it must hold while a line is being typed, when no
 * parser has a tree for it. Block style only, which is what manifests are written in.
 */

export interface Place {
  /** Keys from the document's root; `[]` stands for an item of a list. */
  path: string[];
  /** The line's own key, when it has one. */
  key: string | null;
  /** Column of the line's own key. */
  column: number;
  /** Keys that stand beside it already. */
  siblings: Set<string>;
  apiVersion: string | null;
  kind: string | null;
}

interface Token {
  column: number;
  /** Null for the dash of a list's item. */
  key: string | null;
  /** First column after the key and its colon, or after the dash. */
  end: number;
}

export const ITEM = "[]";
const KEY = /^(?:"([^"]+)"|'([^']+)'|([^\s#:'"[\]{}&*!|>%@`,][^:#]*?))\s*:(?=\s|$)/;
const SEPARATOR = /^---(\s|$)/;

/** Dashes and the key of a line, from the left. A line of text, a comment and an empty line have none. */
export function tokens(line: string): Token[] {
  const found: Token[] = [];
  let column = line.length - line.trimStart().length;
  for (let rest = line.slice(column); ; rest = line.slice(column)) {
    const dash = /^-(\s+|$)/.exec(rest);
    if (dash) {
      found.push({ column, key: null, end: column + 1 });
      column += dash[0].length;
      continue;
    }
    const key = KEY.exec(rest);
    if (key) found.push({ column, key: key[1] ?? key[2] ?? key[3] ?? "", end: column + key[0].length });
    return found;
  }
}

/** The first and the last line of the document of a stream that has this line. */
export function documentLines(lines: readonly string[], line: number): [number, number] {
  let [first, last] = [line, line];
  while (first > 0 && !SEPARATOR.test(lines[first] ?? "")) first--;
  while (last + 1 < lines.length && !SEPARATOR.test(lines[last + 1] ?? "")) last++;
  return [first, last];
}

/** What stands at a line, and at a column of it where the line has no key yet. */
export function place(lines: readonly string[], line: number, column: number): Place {
  const [first, last] = documentLines(lines, line);
  const own = tokens(lines[line] ?? "");
  const key = own.at(-1)?.key === undefined ? null : (own.at(-1)?.key ?? null);
  const dash = own.findLast((token) => token.key === null);
  const at = key !== null ? own.at(-1)!.column : dash ? Math.max(column, dash.column + 2) : indentation(lines[line] ?? "", column);
  const ancestors = key !== null ? own.slice(0, -1) : own;
  const path: string[] = [];
  // What encloses a key stands further left; a list's dashes may stand under the first letter of the list's key.
  let [keys, items] = [at, at];
  const enclose = (token: Token): void => {
    if (token.column >= (token.key === null ? items : keys)) return;
    path.unshift(token.key ?? ITEM);
    items = token.column;
    keys = token.key === null ? token.column + 1 : token.column;
  };
  for (const token of ancestors.toReversed()) enclose(token);
  for (let above = line - 1; above >= first; above--) {
    for (const token of tokens(lines[above] ?? "").toReversed()) enclose(token);
  }
  return {
    path,
    key,
    column: at,
    siblings: siblings(lines, line, at, first, last),
    apiVersion: topLevel(lines, first, last, "apiVersion"),
    kind: topLevel(lines, first, last, "kind"),
  };
}

function indentation(line: string, column: number): number {
  const text = line.length - line.trimStart().length;
  return line.trim() ? text : column;
}

function siblings(lines: readonly string[], line: number, column: number, first: number, last: number): Set<string> {
  const found = new Set<string>();
  for (const step of [-1, 1]) {
    for (let other = line; other >= first && other <= last; other += step) {
      const there = tokens(lines[other] ?? "");
      const beside = there.find((token) => token.key !== null && token.column === column);
      if (beside?.key && other !== line) found.add(beside.key);
      const [start] = there;
      if (!start) continue;
      const opens = start.key === null && start.column < column;
      // A dash to the left begins the item that the line is in, seen from below, or the next one, seen from above.
      if (opens && (step === 1 ? other !== line : true)) break;
      if (start.column < column && !opens) break;
    }
  }
  return found;
}

export function topLevel(lines: readonly string[], first: number, last: number, key: string): string | null {
  for (let line = first; line <= last; line++) {
    const text = lines[line] ?? "";
    if (text.startsWith(`${key}:`)) return text.slice(key.length + 1).replace(/\s#.*$/, "").trim().replace(/^(["'])(.*)\1$/, "$2") || null;
  }
  return null;
}
