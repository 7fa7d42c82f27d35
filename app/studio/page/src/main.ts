/** The page: puts its parts together, and asks the studio again whenever the documents change. */

import * as api from "./api.js";
import { CompareView } from "./compareview.js";
import { Documents, shortNames } from "./documents.js";
import { button, byId, debounce, h, replace, roving } from "./dom.js";
import { Editor } from "./editor.js";
import { FAMILIES } from "./families.js";
import { counted, list } from "./findings.js";
import * as link from "./link.js";
import * as pages from "./pages.js";
import { LiveView } from "./live.js";
import { Schemas, type Schema } from "./schema.js";
import { SimulationView } from "./simulation.js";
import { Stage } from "./stage.js";
import type { Correction, Document, Example, Graph, PlacedFinding, Session } from "./types.js";

type View = "graph" | "simulate" | "compare" | "live";
const VIEWS: readonly [View, string][] = [
  ["graph", "Graph"],
  ["simulate", "Simulate"],
  ["compare", "Compare"],
  ["live", "Live"],
];
const FIRST = "llmkube/quickstart";
const TYPING = 180;
/** Characters of about a hundred objects. */
const LARGE = 50_000;
const NOTHING = "Write a manifest, open an example, or drop a file here.";
const UNREADABLE = "No object can be read from the documents; the findings say why.";

const documents = new Documents();
let schemas = new Schemas([]);
let examples: readonly Example[] = [];
let findings: readonly PlacedFinding[] = [];
/** The documents that the findings are about: a correction of other texts would be put in the wrong place. */
let checked = "";
/** The documents of the graph that was drawn last. */
let drawn: readonly Document[] = [];
let view: View = "graph";
let live: LiveView | null = null;

const checks = new api.Latest();
const graphs = new api.Latest();
/** A cursor that moves on is not followed. */
const RESTING = 300;
const resting = debounce(RESTING, follow);
const editor = new Editor(byId("editor"), documents, () => schemas, fix, resting);
const jump = (document: string, line: number, column?: number): void => editor.jump(document, line, column);
const stage = new Stage(jump, (line) => editor.mark(line));
const simulation = new SimulationView(stage, report, current);
const compare = new CompareView(
  report,
  current,
  (before) => {
    for (const document of before) {
      if (documents.named(document.name)) documents.write(document.name, document.text);
      else documents.add(document);
    }
  },
  jump,
);

function current(): readonly Document[] {
  return documents.list().map(({ name, text }) => ({ name, text }));
}

/** Shows in the graph of the documents what the line of the cursor sets. */
function follow(): void {
  stage.follow(view === "graph" ? editor.line() : null);
}

/** Shows what went wrong; null takes it away again. */
function report(error: unknown): void {
  const problem = byId("problem");
  problem.hidden = error === null;
  if (error === null) return;
  problem.textContent = error instanceof Error ? error.message : String(error);
}

function note(text: string): void {
  byId("note").textContent = text;
  window.setTimeout(() => {
    if (byId("note").textContent === text) byId("note").textContent = "";
  }, 4000);
}

// What the documents lead to.

async function check(): Promise<void> {
  const documents_ = current();
  try {
    const answer = await checks.run((signal) => api.check({ documents: documents_ }, signal));
    if (answer === undefined) return;
    findings = answer;
    checked = JSON.stringify(documents_);
    editor.show(findings);
    byId("findings-title").textContent = counted(findings);
    byId("findings-title").className = findings.some(({ level }) => level === "error") ? "failing" : findings.length ? "waiting" : "ready";
    list(byId("findings"), findings, jump, fix);
    const assumptions = await checks.run((signal) => api.assumptions({ documents: documents_ }, signal));
    if (assumptions !== undefined) replace(byId("assumptions"), ...assumptions.map((sentence) => h("li", {}, sentence)));
  } catch (error) {
    report(error);
  }
}

function fix(finding: PlacedFinding, { title, edits }: Correction): void {
  if (checked !== JSON.stringify(current())) {
    note("The text has changed since; the findings are read again.");
    return;
  }
  for (const name of new Set(edits.map((edit) => edit.document))) {
    editor.apply(name, edits.filter((edit) => edit.document === name));
  }
  note(`Done: ${title}.`);
  editor.jump(finding.document, finding.line, finding.column);
}

/** Whether a graph takes so long that its outline is worth an answer of its own. */
function isLarge(these: readonly Document[]): boolean {
  return these.reduce((sum, { text }) => sum + text.length, 0) > LARGE;
}

async function graph(): Promise<void> {
  const documents_ = current();
  try {
    const ask = (outline: boolean): Promise<Graph | undefined> =>
      stage.whileLoading(graphs.run((signal) => api.graph({ documents: documents_, yaml: false, outline }, signal)));
    const nothing = documents_.some(({ text }) => text.trim()) ? UNREADABLE : NOTHING;
    if (isLarge(documents_) && !isLarge(drawn)) {
      const outline = await ask(true);
      if (outline === undefined) return;
      stage.show(outline, documents_, nothing);
    }
    const answer = await ask(false);
    if (answer === undefined) return;
    report(null);
    drawn = documents_;
    stage.show(answer, documents_, nothing);
  } catch (error) {
    report(error);
  }
}

async function look(): Promise<void> {
  report(null);
  if (view === "graph") await graph();
  else if (view === "simulate") await simulation.run();
  else if (view === "compare") await compare.run();
  else await live?.preview();
}

async function remember(): Promise<void> {
  const fragment = await link.write({ documents: current() as Document[], active: documents.activeIndex(), view });
  history.replaceState(null, "", `#${fragment}`);
}

/** The studio answers one request after the other: the graph before the findings, which take as long. */
const later = debounce(TYPING, () => {
  if (view === "graph") void look();
  void check();
  if (view !== "graph") void look();
  void remember();
});

// Views.

const tabs = new Map<View, HTMLButtonElement>();

function show(wanted: View): Promise<void> {
  simulation.leave();
  compare.leave();
  graphs.cancel();
  live?.leave();
  view = wanted;
  follow();
  stage.close();
  for (const [name, tab] of tabs) {
    tab.setAttribute("aria-selected", String(name === view));
    tab.tabIndex = name === view ? 0 : -1;
  }
  tabs.get(view)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  const panel = byId("view");
  panel.className = `view show-${view}`;
  panel.setAttribute("aria-labelledby", `tab-${view}`);
  if (view === "graph") replace(panel, stage.element);
  else if (view === "simulate") replace(panel, simulation.element, stage.element);
  else if (view === "compare") replace(panel, compare.element);
  else if (live) replace(panel, live.element, stage.element);
  if (view === "live") void live?.enter();
  stage.fit();
  void remember();
  return look();
}

function views(session: Session): void {
  const bar = byId("views");
  for (const [name, text] of VIEWS.filter(([name]) => name !== "live" || session.live)) {
    const attrs = { role: "tab", id: `tab-${name}`, "aria-controls": "view" };
    const tab = button(name === "live" && session.context ? `${text} · ${session.context}` : text, () => show(name), { attrs });
    tabs.set(name, tab);
    bar.append(tab);
  }
  roving(bar, "[role=tab]");
  bar.addEventListener("keydown", (event) => {
    const tab = document.activeElement as HTMLElement;
    if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") tab.click();
  });
}

// Documents.

function bar(): void {
  const active = documents.active();
  const titles = shortNames(documents.list().map(({ name }) => name));
  const tabs_ = documents.list().map(({ name }) => {
    const chosen = name === active?.name;
    const tab = button(titles.get(name) ?? name, () => (documents.select(name), editor.focus()), {
      class: "document",
      attrs: { "aria-current": chosen ? "true" : null, title: `${name}: press F2 or double-click to rename` },
      on: {
        dblclick: () => rename(name, tab),
        keydown: (event) => {
          if (event.key === "F2") rename(name, tab);
        },
      },
    });
    const close = button("✕", () => (documents.close(name), editor.focus()), { class: "close", attrs: { "aria-label": `Close ${name}` } });
    return h("span", { class: chosen ? "document-tab chosen" : "document-tab" }, tab, close);
  });
  const add = button("+", () => (documents.add({ name: "manifest.yaml", text: "" }), editor.focus()), {
    class: "icon",
    attrs: { "aria-label": "New document", title: "New document" },
  });
  replace(byId("documents"), ...tabs_, add);
  document.title = `${(active && titles.get(active.name)) ?? ""} · modelhooks studio`;
}

function rename(name: string, tab: HTMLElement): void {
  const input = h("input", { class: "rename", attrs: { value: name, "aria-label": `New name of ${name}`, spellcheck: "false" } });
  let done = false;
  const end = (wanted: string): void => {
    if (done) return;
    done = true;
    input.replaceWith(tab);
    documents.rename(name, wanted);
    editor.focus();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") end(input.value);
    if (event.key === "Escape") end(name);
  });
  input.addEventListener("blur", () => end(input.value));
  tab.replaceWith(input);
  input.focus();
  input.select();
}

async function openFiles(files: Iterable<File>): Promise<void> {
  const read = [...files].map(async (file) => ({ name: file.name, text: await file.text() }));
  for (const document of await Promise.all(read)) place(document);
  compare.keep(current(), "The earlier version is the files as they were opened.");
}

/** Opens a document, in place of an empty one that nobody wrote. */
function place(document: Document): string {
  const empty = documents.list().find(({ text }) => !text.trim());
  const name = documents.add(document);
  if (empty) documents.close(empty.name);
  return name;
}

/** Opens an example in place of another that nobody changed, and beside what one wrote or opened. */
function openExample(example: Example): void {
  const opened = { name: `${example.name.split("/").at(-1)}.yaml`, text: example.text };
  if (documents.list().every(({ text }) => examples.some((one) => one.text === text))) documents.set([opened]);
  else place(opened);
  compare.keep(current(), `The earlier version is the example ${example.name} as it was opened.`);
  byId<HTMLDialogElement>("examples-dialog").close();
  editor.focus();
}

function examplesDialog(): void {
  const dialog = byId<HTMLDialogElement>("examples-dialog");
  const found = h("div", { class: "example-list" });
  const filter = h("input", {
    attrs: { type: "search", placeholder: "Filter", "aria-label": "Filter examples", spellcheck: "false" },
    on: { input: () => fill() },
  });
  const fill = (): void => {
    const wanted = filter.value.trim().toLowerCase();
    const matching = examples.filter(({ name, title }) => `${name} ${title}`.toLowerCase().includes(wanted));
    const groups = Object.entries(FAMILIES).map(([family, title]) => {
      const entries = matching.filter((example) => example.family === family);
      if (!entries.length) return null;
      const items = entries.map((example) =>
        h(
          "li",
          {},
          h(
            "button",
            { class: "example", attrs: { type: "button" }, on: { click: () => openExample(example) } },
            h("strong", {}, example.name.split("/").slice(1).join("/")),
            h("span", {}, example.title),
          ),
        ),
      );
      return h("section", {}, h("h3", {}, title), h("ul", {}, ...items));
    });
    replace(found, ...groups);
    if (!matching.length) replace(found, h("p", { class: "muted" }, "No example is like that."));
  };
  fill();
  const close = button("✕", () => dialog.close(), { class: "icon", attrs: { "aria-label": "Close" } });
  replace(dialog, h("div", { class: "dialog-head" }, h("h2", { id: "examples-title" }, "Examples"), filter, close), found);
  byId("examples").addEventListener("click", () => {
    dialog.showModal();
    filter.focus();
  });
}

// Keyboard, theme, files that are dropped, the width of the editor.

const KEYS: readonly [string, string][] = [
  ["Ctrl+.", "Apply the correction nearest to the cursor"],
  ["F8, Shift+F8", "Next and previous finding"],
  ["Ctrl+Space", "Complete"],
  ["Ctrl+F", "Find and replace"],
  ["Ctrl+], Ctrl+[", "Indent more, less"],
  ["Tab", "Leaves the editor"],
  ["F6, Shift+F6", "Next and previous pane"],
  ["Alt+1 … Alt+4", "Graph, Simulate, Compare, Live"],
  ["Arrows, Enter", "Move in the graph, open an object"],
  ["Left, Right", "Fold and open a resource"],
  ["Escape", "Close the object"],
  ["F2", "Rename a document, on its tab"],
];

function help(): void {
  const dialog = byId<HTMLDialogElement>("help-dialog");
  const keys = KEYS.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]);
  const close = button("✕", () => dialog.close(), { class: "icon", attrs: { "aria-label": "Close" } });
  const licences = h("p", { class: "muted" }, h("a", { attrs: { href: "LICENSES.txt", target: "_blank" } }, "Licences of what this page contains"));
  replace(
    dialog,
    h("div", { class: "dialog-head" }, h("h2", { id: "help-title" }, "Keyboard"), close),
    h("dl", { class: "keys" }, ...keys),
    licences,
  );
  byId("help").addEventListener("click", () => dialog.showModal());
}

/** Moves the focus to the next part of the page that has something for it; `by` is -1 for the one before. */
function nextPane(by: number): void {
  const within = (id: string, ...first: string[]): HTMLElement | null | undefined =>
    first.map((selector) => byId(id).querySelector<HTMLElement>(selector)).find(Boolean);
  const parts: readonly [string, HTMLElement | null | undefined][] = [
    ["editor", byId("editor")],
    ["findings", within("findings", "button")],
    ["views", within("views", "[aria-selected='true']")],
    ["view", within("view", "[role=treeitem][tabindex='0']", "button", "[tabindex='0']")],
  ];
  const panes = parts.filter(([, first]) => first);
  const here = panes.findIndex(([id]) => byId(id).contains(document.activeElement));
  const from = here < 0 && by < 0 ? 0 : here;
  const [id, first] = panes[(from + by + panes.length) % panes.length]!;
  if (id === "editor") editor.focus();
  else first?.focus();
}

function keyboard(): void {
  document.addEventListener("keydown", (event) => {
    const number = Number(event.code.replace("Digit", ""));
    const chosen = VIEWS[number - 1]?.[0];
    if (event.altKey && !event.ctrlKey && !event.metaKey && chosen && tabs.has(chosen)) {
      event.preventDefault();
      void show(chosen);
      tabs.get(chosen)?.focus();
    }
    if (event.key === "F6") {
      event.preventDefault();
      nextPane(event.shiftKey ? -1 : 1);
    }
  });
}

const THEMES = ["auto", "light", "dark"] as const;
const STORED = "modelhooks-studio-theme";

function theme(): void {
  const control = byId("theme");
  const apply = (name: (typeof THEMES)[number]): void => {
    if (name === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = name;
    control.textContent = `Theme: ${name}`;
    stage.recolour();
  };
  let chosen = THEMES.find((name) => name === localStorage.getItem(STORED)) ?? "auto";
  apply(chosen);
  control.addEventListener("click", () => {
    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length] ?? "auto";
    localStorage.setItem(STORED, chosen);
    apply(chosen);
  });
}

function dropping(): void {
  const overlay = byId("dropping");
  const files = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
  window.addEventListener("dragover", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    overlay.hidden = false;
  });
  window.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) overlay.hidden = true;
  });
  // Before the editor sees it, which would put the text of the file at the cursor.
  window.addEventListener(
    "drop",
    (event) => {
      overlay.hidden = true;
      if (!files(event)) return;
      event.preventDefault();
      event.stopPropagation();
      void openFiles(event.dataTransfer?.files ?? []);
    },
    true,
  );
  const input = byId<HTMLInputElement>("files");
  byId("open").addEventListener("click", () => input.click());
  input.addEventListener("change", () => void openFiles(input.files ?? []).then(() => (input.value = "")));
}

function splitter(): void {
  const handle = byId("splitter");
  const panes = byId("panes");
  const to = (percent: number): void => {
    const width = Math.min(Math.max(percent, 20), 75);
    panes.style.setProperty("--editor", `${width}%`);
    handle.setAttribute("aria-valuenow", String(Math.round(width)));
  };
  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent): void => to((moved.clientX / panes.clientWidth) * 100);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
  });
  handle.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (by !== undefined) to(Number(handle.getAttribute("aria-valuenow")) + by);
  });
}

/** In a narrow window the graph stands above the editor, in the order of Tab as for the eye. */
function narrow(): void {
  const query = window.matchMedia("(width < 900px)");
  const [panes, main] = [byId("panes"), byId("main")];
  const order = (): void => {
    const focused = document.activeElement as HTMLElement | null;
    if (query.matches) panes.prepend(main);
    else panes.append(main);
    focused?.focus();
  };
  query.addEventListener("change", order);
  order();
}

function share(): void {
  byId("share").addEventListener("click", () => {
    void remember()
      .then(() => navigator.clipboard.writeText(location.href))
      .then(
        () => note("The address has the documents, and is on the clipboard."),
        () => note("The address above has the documents."),
      );
  });
}

/** Opens the documents of another address, which one puts in place of this one. */
function links(): void {
  window.addEventListener("hashchange", () => {
    void link.read(location.hash).then((shared) => {
      if (!shared) return;
      documents.set(shared.documents, shared.active);
      const wanted = VIEWS.find(([name]) => name === shared.view)?.[0];
      if (wanted && tabs.has(wanted)) void show(wanted);
    });
  });
}

async function start(): Promise<void> {
  theme();
  help();
  keyboard();
  dropping();
  splitter();
  narrow();
  share();
  links();
  documents.onChange(bar);
  const [session, examples_, scenes, settings] = await Promise.all([api.session(), api.examples(), api.scenes(), api.settings()]);
  examples = examples_;
  pages.offer(session);
  simulation.offer(scenes);
  compare.offer(settings);
  views(session);
  examplesDialog();
  const shared = await link.read(location.hash);
  const first = examples.find(({ name }) => name === FIRST);
  const opened = session.documents.length ? session.documents : first ? [{ name: "quickstart.yaml", text: first.text }] : [];
  documents.set(shared?.documents ?? (opened.length ? opened : [{ name: "manifest.yaml", text: "" }]), shared?.active ?? 0);
  compare.keep(current(), "The earlier version is what the page began with.");
  documents.onChange(later);
  if (session.live) {
    live = new LiveView(stage, report, place, (name) => documents.named(name), (name, text) => documents.write(name, text), jump);
    void live.start();
  }
  const wanted = VIEWS.find(([name]) => name === shared?.view)?.[0];
  await show(wanted && tabs.has(wanted) ? wanted : session.live && !shared && !session.documents.length ? "live" : "graph");
  // Only now, because the studio would work on these and on the first view at the same time.
  void check();
  schemas = new Schemas(Object.values(await api.schemas()) as Schema[]);
  document.documentElement.dataset["loaded"] = "";
}

start().catch(report);
