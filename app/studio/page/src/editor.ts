/** The editor of the active document: highlighting, findings, fixes, completion and hover. */

import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  startCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, StateEffect, StateField, type Extension, type Text } from "@codemirror/state";
import {
  crosshairCursor,
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  tooltips,
  type DecorationSet,
  type Tooltip,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { changes, offset, unitsBefore, type Documents } from "./documents.js";
import { h } from "./dom.js";
import { ofFields } from "./pages.js";
import { first, properties, typeOf, values, type Schema, type Schemas } from "./schema.js";
import type { Line } from "./sets.js";
import type { TextEdit, PlacedFinding, Correction } from "./types.js";
import { ITEM, place } from "./yamlpath.js";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.separator, tags.punctuation, tags.meta, tags.squareBracket, tags.brace], color: "var(--muted)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 16px 0 6px" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none", paddingLeft: "8px" },
  ".cm-activeLine": { backgroundColor: "var(--line-soft)" },
  ".cm-line.cm-setLine": { backgroundColor: "var(--accent-soft)", boxShadow: "inset 3px 0 var(--accent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  ".cm-foldGutter .cm-gutterElement": { color: "var(--faint)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection)",
  },
  ".cm-selectionMatch": { backgroundColor: "var(--accent-soft)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  // No pictures in place of the underline: the page's policy would need to allow them.
  ".cm-lintRange.cm-lintRange": {
    backgroundImage: "none",
    paddingBottom: "0",
    textDecoration: "underline wavy 1.5px",
    textUnderlineOffset: "3px",
    textDecorationSkipInk: "none",
  },
  ".cm-lintRange-error.cm-lintRange": { textDecorationColor: "var(--failing)" },
  ".cm-lintRange-warning.cm-lintRange": { textDecorationColor: "var(--waiting)" },
  ".cm-lintRange-info.cm-lintRange": { textDecorationColor: "var(--accent)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    boxShadow: "var(--shadow)",
    fontFamily: "var(--sans)",
    overflow: "hidden",
  },
  ".cm-diagnostic": { padding: "10px 12px", borderLeft: "3px solid transparent", maxWidth: "460px", whiteSpace: "normal" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--failing)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--waiting)" },
  ".cm-diagnostic-info": { borderLeftColor: "var(--accent)" },
  ".cm-diagnosticAction": {
    font: "inherit",
    fontWeight: "600",
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
    borderRadius: "6px",
    padding: "3px 10px",
    marginLeft: "10px",
    cursor: "pointer",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "16em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 12px", display: "flex", gap: "16px", justifyContent: "space-between" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionInfo": { padding: "10px 12px", maxWidth: "320px", lineHeight: "1.45" },
  ".cm-hover": { padding: "10px 12px", maxWidth: "420px", lineHeight: "1.45" },
  ".cm-hover-title": { fontFamily: "var(--mono)", fontWeight: "600", marginRight: "8px" },
  ".cm-hover-type": { color: "var(--muted)" },
  ".cm-hover a": { color: "var(--accent)" },
  ".cm-hover p": { margin: "6px 0 0" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panels-top": { borderBottomColor: "var(--line)" },
  ".cm-panel.cm-search": { padding: "8px 32px 8px 12px", fontFamily: "var(--sans)" },
  ".cm-panel.cm-search :is(input, button, label)": { fontSize: "13px" },
  ".cm-panel.cm-search label": { display: "inline-flex", alignItems: "center", gap: "4px" },
  ".cm-panel.cm-search [name=close]": { color: "var(--muted)", fontSize: "18px", top: "6px", right: "8px", cursor: "pointer" },
  ".cm-textfield": { backgroundColor: "var(--surface)", border: "1px solid var(--line)", borderRadius: "6px", padding: "3px 8px" },
  ".cm-button": {
    backgroundImage: "none",
    backgroundColor: "var(--surface)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    padding: "3px 9px",
    cursor: "pointer",
  },
  ".cm-panels :focus-visible": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
});

const marking = StateEffect.define<number | null>();
/** The line that set the value at which one looks; it counts from 1. */
const markedLine = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { effects, state }) {
    for (const effect of effects) {
      if (!effect.is(marking)) continue;
      const known = effect.value !== null && effect.value <= state.doc.lines;
      return known ? Decoration.set(Decoration.line({ class: "cm-setLine" }).range(state.doc.line(effect.value!).from)) : Decoration.none;
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const LEVELS = { error: "error", warning: "warning", advice: "info" } as const;

/** A CodeMirror in a shadow root: its styles are adopted there, which no policy has to allow. */
function mounted(host: HTMLElement, state: EditorState): EditorView {
  const root = host.attachShadow({ mode: "open" });
  return new EditorView({ state, parent: root, root });
}

const shared: Extension = [
  yaml(),
  syntaxHighlighting(colours),
  theme,
  lineNumbers(),
  foldGutter(),
  drawSelection(),
  search({ top: true }),
  highlightSelectionMatches(),
  indentUnit.of("  "),
];

/** Shows YAML; nothing can be typed. */
export class Viewer {
  private readonly view: EditorView;

  constructor(host: HTMLElement, label: string) {
    const state = EditorState.create({
      extensions: [
        shared,
        EditorState.readOnly.of(true),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        keymap.of([...searchKeymap, ...foldKeymap, ...defaultKeymap]),
      ],
    });
    this.view = mounted(host, state);
  }

  show(text: string): void {
    if (this.view.state.doc.toString() === text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
    this.view.scrollDOM.scrollTop = 0;
  }
}

export class Editor {
  private readonly view: EditorView;
  private readonly states = new Map<string, EditorState>();
  private shown = "";
  private findings: readonly PlacedFinding[] = [];

  constructor(
    host: HTMLElement,
    private readonly documents: Documents,
    private readonly schemas: () => Schemas,
    private readonly fix: (finding: PlacedFinding, fix: Correction) => void,
    private readonly moved: () => void,
  ) {
    this.view = mounted(host, this.create("", ""));
    documents.onChange(() => this.follow());
    this.follow();
  }

  focus(): void {
    this.view.focus();
  }

  /** Underlines the findings of the documents; they hold for the texts as they are. */
  show(findings: readonly PlacedFinding[]): void {
    this.findings = findings;
    this.view.dispatch(setDiagnostics(this.view.state, this.diagnostics()));
  }

  /** Opens a document at a place that counts from 1. */
  jump(name: string, line: number, column = 1, focus = true): void {
    if (!this.documents.select(name)) return;
    const at = offset(this.view.state.doc.toString(), line, column);
    this.view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    if (focus) this.view.focus();
  }

  /** The place of the cursor. */
  line(): Line {
    return { document: this.shown, line: this.view.state.doc.lineAt(this.view.state.selection.main.head).number };
  }

  /** Marks a line of the document that is shown, and scrolls to it in the editor, not on the page; null marks none. */
  mark(at: Line | null): void {
    const line = at?.document === this.shown && at.line <= this.view.state.doc.lines ? at.line : null;
    this.view.dispatch({ effects: marking.of(line) });
    if (line === null) return;
    const { top, bottom } = this.view.lineBlockAt(this.view.state.doc.line(line).from);
    const box = this.view.scrollDOM;
    if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
  }

  /** Applies edits of one document so that one undo takes them back together. */
  apply(name: string, edits: readonly TextEdit[]): void {
    const document = this.documents.named(name);
    if (!document) return;
    const wanted = changes(document.text, edits);
    if (name === this.shown) {
      this.view.dispatch({ changes: wanted, userEvent: "input.fix", scrollIntoView: true });
      return;
    }
    const state = this.states.get(name) ?? this.create(name, document.text);
    const next = state.update({ changes: wanted, userEvent: "input.fix" }).state;
    this.states.set(name, next);
    this.documents.write(name, next.doc.toString());
  }

  /** The finding with a fix that is nearest to the cursor's line, and on it when there is one. */
  private fixHere(): boolean {
    const line = this.view.state.doc.lineAt(this.view.state.selection.main.head).number;
    const fixable = this.findings.filter((finding) => finding.fixes?.length && finding.document === this.shown);
    const [nearest] = fixable.toSorted((one, other) => Math.abs(one.line - line) - Math.abs(other.line - line));
    const fix = nearest?.fixes?.[0];
    if (nearest && fix) this.fix(nearest, fix);
    return fix !== undefined;
  }

  private follow(): void {
    const active = this.documents.active();
    if (!active) return;
    if (active.name !== this.shown) {
      if (this.shown) this.states.set(this.shown, this.view.state);
      const kept = this.states.get(active.name);
      this.shown = active.name;
      this.view.setState(kept?.doc.toString() === active.text ? kept : this.create(active.name, active.text));
      this.view.dispatch(setDiagnostics(this.view.state, this.diagnostics()));
    } else if (this.view.state.doc.toString() !== active.text) {
      this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: active.text } });
    }
    const open = new Set(this.documents.list().map((document) => document.name));
    for (const name of this.states.keys()) if (!open.has(name)) this.states.delete(name);
  }

  private create(name: string, text: string): EditorState {
    return EditorState.create({
      doc: text,
      extensions: [
        shared,
        history(),
        closeBrackets(),
        bracketMatching(),
        crosshairCursor(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        markedLine,
        tooltips({ position: "fixed" }),
        autocompletion({ override: [(context) => this.complete(context)], icons: false }),
        hoverTooltip((view, position) => this.hover(view, position), { hoverTime: 350 }),
        EditorView.contentAttributes.of({ "aria-label": `Manifest ${name}`, tabindex: "0" }),
        keymap.of([
          { key: "Mod-.", run: () => this.fixHere(), preventDefault: true },
          { key: "Mod-]", run: indentMore },
          { key: "Mod-[", run: indentLess },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...lintKeymap,
          ...searchKeymap,
          ...foldKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) this.documents.write(this.shown, update.state.doc.toString());
          if (update.selectionSet) this.moved();
        }),
      ],
    });
  }

  private diagnostics(): Diagnostic[] {
    const text = this.view.state.doc.toString();
    return this.findings
      .filter((finding) => finding.document === this.shown)
      .map((finding) => {
        const from = offset(text, finding.line, finding.column);
        const to = Math.max(offset(text, finding.endLine, finding.endColumn), from);
        return {
          ...visible(this.view.state.doc, from, to),
          severity: LEVELS[finding.level],
          source: finding.id,
          message: finding.message,
          actions: (finding.fixes ?? []).map((fix) => ({ name: fix.title, apply: () => this.fix(finding, fix) })),
        };
      })
      .toSorted((one, other) => one.from - other.from);
  }

  private complete(context: CompletionContext): CompletionResult | null {
    const { doc } = context.state;
    const line = doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    if (/(^|\s)#/.test(before)) return null;
    const here = place(lines(doc), line.number - 1, before.length);
    const schemas = this.schemas();
    const value = /:\s+(\S*)$/.exec(before) ?? /^\s*-\s+(\S*)$/.exec(before);
    if (here.key !== null && value && /:\s/.test(before)) {
      const from = context.pos - (value[1] ?? "").length;
      return options(from, this.valueOptions(schemas, here.path, here.key, here.apiVersion, here.kind));
    }
    const word = /[\w./-]*$/.exec(before)?.[0] ?? "";
    if (!word && !context.explicit) return null;
    const from = context.pos - word.length;
    if (here.path.length === 0 && !(here.apiVersion && here.kind)) return options(from, kinds(schemas, here.siblings));
    const found = schemas.at(here.apiVersion, here.kind, here.path);
    const items = values(found).map((text) => ({ label: text, type: "enum" }));
    const taken = new Set([...here.siblings].filter((key) => key !== word));
    const fields = [...properties(found)].filter(([name]) => !taken.has(name));
    const required = new Set(found.flatMap((schema) => schema.required ?? []));
    const deeper = " ".repeat(here.column + 2);
    return options(from, [
      ...items,
      ...fields.map(([name, schema]) => this.field(name, schema, [...here.path, name], here, required.has(name), deeper)),
    ]);
  }

  private field(
    name: string,
    schema: Schema,
    path: readonly string[],
    here: { apiVersion: string | null; kind: string | null },
    required: boolean,
    deeper: string,
  ): Completion {
    const all = this.schemas().at(here.apiVersion, here.kind, path);
    const type = typeOf(all);
    const ending = type.startsWith("list") ? `:\n${deeper}- ` : type === "object" ? `:\n${deeper}` : ": ";
    return {
      label: name,
      detail: required ? `${type}, required` : type,
      boost: required ? 2 : 0,
      apply: (view, _, from, to) => {
        view.dispatch({ changes: { from, to, insert: name + ending }, selection: { anchor: from + name.length + ending.length } });
        startCompletion(view);
      },
      info: () => about(all.length ? all : [schema]),
    };
  }

  private valueOptions(
    schemas: Schemas,
    path: readonly string[],
    key: string,
    apiVersion: string | null,
    kind: string | null,
  ): Completion[] {
    if (path.length === 0 && (key === "kind" || key === "apiVersion")) {
      const matching = schemas.kinds().filter(([version]) => key === "apiVersion" || !apiVersion || version === apiVersion);
      return [...new Set(matching.map(([version, name]) => (key === "kind" ? name : version)))].map((label) => ({ label }));
    }
    const found = schemas.at(apiVersion, kind, [...path, key]);
    const preset = first(found, (schema) => schema.default);
    return values(found).map((label) => ({ label, detail: String(preset) === label ? "default" : "" }));
  }

  private hover(view: EditorView, position: number): Tooltip | null {
    const { doc } = view.state;
    const line = doc.lineAt(position);
    const here = place(lines(doc), line.number - 1, 0);
    if (here.key === null) return null;
    const from = line.from + here.column;
    const to = from + here.key.length;
    if (position < from || position > to) return null;
    const found = this.schemas().at(here.apiVersion, here.kind, [...here.path, here.key]);
    if (!found.length) return null;
    const title = [...here.path, here.key].join(".").replaceAll(`.${ITEM}`, ITEM);
    const head = h("div", {}, h("span", { class: "cm-hover-title" }, title), h("span", { class: "cm-hover-type" }, typeOf(found)));
    return { pos: from, end: to, create: () => ({ dom: h("div", { class: "cm-hover" }, head, about(found), ofFields(here.apiVersion, here.kind)) }) };
  }
}

/** A range that can be seen: an empty one becomes the word at it, or the character. */
function visible(doc: Text, from: number, to: number): { from: number; to: number } {
  if (to > from || doc.length === 0) return { from, to };
  const line = doc.lineAt(from);
  const rest = /^\S+/.exec(line.text.slice(from - line.from))?.[0].length ?? 0;
  if (rest) return { from, to: from + rest };
  const start = line.from + unitsBefore(line.text, line.text.length - line.text.trimStart().length + 1);
  return { from: Math.min(start, from), to: Math.max(from, line.to) };
}

function lines(doc: Text): string[] {
  return doc.toString().split("\n");
}

function options(from: number, found: Completion[]): CompletionResult | null {
  return found.length ? { from, options: found, validFor: /^[\w./-]*$/ } : null;
}

/** What a new document may begin with. */
function kinds(schemas: Schemas, siblings: ReadonlySet<string>): Completion[] {
  const whole = schemas.kinds().map(([apiVersion, kind]) => ({
    label: kind,
    detail: apiVersion,
    apply: `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: `,
  }));
  const keys = ["apiVersion", "kind", "metadata", "spec"].filter((key) => !siblings.has(key));
  return [...(siblings.size ? [] : whole), ...keys.map((label) => ({ label, apply: `${label}: ` }))];
}

function about(found: readonly Schema[]): HTMLElement {
  const text = first(found, (schema) => schema.description);
  const preset = first(found, (schema) => schema.default);
  const allowed = values(found);
  const [minimum, maximum] = [first(found, (schema) => schema.minimum), first(found, (schema) => schema.maximum)];
  const bounds = [minimum === undefined ? "" : `at least ${minimum}`, maximum === undefined ? "" : `at most ${maximum}`];
  const notes = [
    preset === undefined ? "" : `Default: ${JSON.stringify(preset)}`,
    allowed.length ? `One of ${allowed.join(", ")}` : "",
    bounds.filter(Boolean).join(", "),
  ].filter(Boolean);
  return h(
    "div",
    {},
    text ? h("p", {}, text) : null,
    notes.length ? h("p", { class: "cm-hover-type" }, notes.join(" · ")) : null,
  );
}
