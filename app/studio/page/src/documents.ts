/** The documents that are open, and who wants to know when they change. */

import type { Document, TextEdit } from "./types.js";

export class Documents {
  private all: Document[] = [];
  private current = 0;
  private readonly listeners: (() => void)[] = [];

  /** Called after a text, the list or the choice changed. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  list(): readonly Document[] {
    return this.all;
  }

  active(): Document | undefined {
    return this.all[this.current];
  }

  activeIndex(): number {
    return this.current;
  }

  named(name: string): Document | undefined {
    return this.all.find((document) => document.name === name);
  }

  set(documents: readonly Document[], active = 0): void {
    this.all = [];
    for (const { name, text } of documents) this.all.push({ name: this.free(name), text });
    this.current = Math.min(Math.max(active, 0), Math.max(this.all.length - 1, 0));
    this.changed();
  }

  /** Opens a document in a tab of its own and answers the name that it was given. */
  add({ name, text }: Document): string {
    const given = this.free(name);
    this.all.push({ name: given, text });
    this.current = this.all.length - 1;
    this.changed();
    return given;
  }

  select(name: string): boolean {
    const index = this.all.findIndex((document) => document.name === name);
    if (index < 0) return false;
    if (index !== this.current) {
      this.current = index;
      this.changed();
    }
    return true;
  }

  close(name: string): void {
    const index = this.all.findIndex((document) => document.name === name);
    if (index < 0) return;
    this.all.splice(index, 1);
    if (this.current > index || this.current === this.all.length) this.current--;
    if (this.all.length === 0) this.all = [{ name: "manifest.yaml", text: "" }];
    this.current = Math.max(this.current, 0);
    this.changed();
  }

  rename(name: string, wanted: string): void {
    const document = this.named(name);
    if (!document || !wanted.trim() || wanted === name) return;
    document.name = this.free(wanted.trim());
    this.changed();
  }

  write(name: string, text: string): void {
    const document = this.named(name);
    if (!document || document.text === text) return;
    document.text = text;
    this.changed();
  }

  private free(name: string): string {
    let given = name || "manifest.yaml";
    for (let number = 2; this.named(given); number++) given = name.replace(/(\.ya?ml)?$/, `-${number}$1`);
    return given;
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}

/** The last parts of paths, as many as tell each path from the others. */
export function shortNames(names: readonly string[]): Map<string, string> {
  const tail = (name: string, parts: number): string => name.split("/").slice(-parts).join("/");
  const short = (name: string): string => {
    let parts = 1;
    while (tail(name, parts) !== name && names.some((other) => other !== name && tail(other, parts) === tail(name, parts))) parts++;
    return tail(name, parts);
  };
  return new Map(names.map((name) => [name, short(name)]));
}

/** A column counts characters as the studio does; an offset counts UTF-16 units as strings here do. */
export function unitsBefore(line: string, column: number): number {
  return [...line].slice(0, Math.max(column - 1, 0)).join("").length;
}

/** The offset of a place that counts from 1, inside the text whatever the place says. */
export function offset(text: string, line: number, column: number): number {
  let start = 0;
  for (let number = 1; number < line; number++) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  const end = text.indexOf("\n", start);
  return start + unitsBefore(text.slice(start, end < 0 ? text.length : end), column);
}

export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** The edits of a document as offsets, from the first to the last. */
export function changes(text: string, edits: readonly TextEdit[]): Change[] {
  return edits
    .map((edit) => ({
      from: offset(text, edit.line, edit.column),
      to: offset(text, edit.endLine, edit.endColumn),
      insert: edit.text,
    }))
    .toSorted((one, other) => one.from - other.from);
}
