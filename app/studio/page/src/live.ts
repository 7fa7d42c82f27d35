/** The objects of a cluster as they are now: a list to filter, the graph around one of them, and what an edit would do. */

import * as api from "./api.js";
import { comparison } from "./changes.js";
import { button, debounce, h, middle, replace } from "./dom.js";
import { FAMILIES } from "./families.js";
import { counted } from "./findings.js";
import type { Stage } from "./stage.js";
import { truth } from "./states.js";
import type { Document, LiveEvent, LiveObject } from "./types.js";
import { VirtualList } from "./virtual.js";

const ROW = 52;

export class LiveView {
  readonly element: HTMLElement;
  private readonly objects = new Map<string, LiveObject>();
  private readonly graphs = new api.Latest();
  private readonly edits = new api.Latest();
  private readonly list: VirtualList<LiveObject>;
  private readonly overview: HTMLElement;
  private readonly about = h("div", { class: "live-object", attrs: { hidden: true } });
  /** What the list has in one line, in full. */
  private readonly cause = h("p", {});
  private readonly edit = h("div", { class: "live-edit" });
  private readonly count = h("p", { class: "muted", attrs: { role: "status" } });
  /** What is said where no object is listed. */
  private readonly nothing = h("p", { class: "live-nothing muted" }, "Reading the cluster…");
  private readonly namespaces = h("select", { attrs: { "aria-label": "Namespace" }, on: { change: () => this.filter() } });
  private readonly families = h("select", { attrs: { "aria-label": "Family" }, on: { change: () => this.filter() } });
  private readonly text = h("input", {
    attrs: { type: "search", placeholder: "Filter by name or cause", "aria-label": "Filter by text", spellcheck: "false" },
    on: { input: () => this.filter() },
  });
  private readonly again = debounce(120, () => void this.graph());
  /** An event has the object's own words only; why nothing answers a kind is in the list. */
  private readonly reload = debounce(1000, () => void this.load());
  private events: EventSource | null = null;
  private opened: { object: LiveObject; document: string; written: string } | null = null;
  private shown = false;

  constructor(
    private readonly stage: Stage,
    private readonly report: (error: unknown) => void,
    private readonly open: (document: Document) => string,
    private readonly named: (name: string) => Document | undefined,
    private readonly write: (name: string, text: string) => void,
    private readonly jump: (document: string, line: number, column: number) => void,
  ) {
    const host = h("div", { class: "virtual", id: "live-list", attrs: { "aria-label": "Objects of the cluster" } });
    this.list = new VirtualList(host, ROW, row, (object) => void this.choose(object));
    const filters = h("div", { class: "filters" }, this.text, this.namespaces, this.families, this.count);
    this.overview = h("div", { class: "live-overview" }, filters, this.nothing, host);
    this.element = h("div", { class: "live" }, this.overview, this.about, this.edit);
    choices(this.families, "All families", Object.keys(FAMILIES));
    choices(this.namespaces, "All namespaces", []);
  }

  /** Reads the cluster once, and then follows what changes. */
  async start(): Promise<void> {
    this.follow();
    await this.load();
  }

  async enter(): Promise<void> {
    this.shown = true;
    await this.graph();
  }

  leave(): void {
    this.shown = false;
    this.graphs.cancel();
  }

  /** Whether the stage shows an object's graph, rather than the list alone. */
  get onObject(): boolean {
    return this.opened !== null;
  }

  /** What the edited text would do, after the document changed. */
  async preview(): Promise<void> {
    const document = this.opened && this.named(this.opened.document);
    if (!this.opened || !document || document.text === this.opened.written) return replace(this.edit);
    try {
      const answer = await this.edits.run((signal) => api.liveCompare(document.text, signal));
      if (answer === undefined) return;
      this.report(null);
      const copy = button("Copy", () => void navigator.clipboard.writeText(answer.command), { class: "quiet" });
      replace(
        this.edit,
        h("h3", {}, "What the edit would do"),
        h("p", { class: "muted" }, counted(answer.findings)),
        comparison({ ...answer, edits: answer.edits.map((edit) => ({ ...edit, document: document.name })) }, this.jump),
        answer.command ? h("div", { class: "command" }, h("pre", { attrs: { tabindex: 0 } }, answer.command), copy) : null,
      );
    } catch (error) {
      replace(this.edit);
      this.report(error);
    }
  }

  private async load(): Promise<void> {
    try {
      const objects = await api.liveObjects();
      this.objects.clear();
      for (const object of objects) this.objects.set(key(object), object);
      this.filter();
    } catch (error) {
      this.nothing.textContent = "";
      this.report(error);
    }
  }

  private follow(): void {
    let lost = false;
    this.events = api.liveEvents();
    this.events.addEventListener("error", () => {
      lost = true;
      this.count.textContent = "The connection to the studio is lost; trying again…";
    });
    this.events.addEventListener("open", () => {
      if (lost) void this.load();
      lost = false;
    });
    this.events.addEventListener("message", (message) => this.heard(JSON.parse(message.data as string) as LiveEvent));
  }

  private heard({ action, object, namespace }: LiveEvent): void {
    if (object) {
      if (action === "deleted") this.objects.delete(key(object));
      else this.objects.set(key(object), object);
      if (object.ready === "Unknown") this.reload();
      this.filter();
    }
    if (this.opened && (!namespace || namespace === this.opened.object.namespace)) this.again();
  }

  private filter(): void {
    const all = [...this.objects.values()];
    choices(this.namespaces, "All namespaces", [...new Set(all.map(({ namespace }) => namespace))].toSorted());
    const [text, namespace, family] = [this.text.value.trim().toLowerCase(), this.namespaces.value, this.families.value];
    const matching = all.filter(
      (object) =>
        (!namespace || object.namespace === namespace) &&
        (!family || object.family === family) &&
        (!text || `${object.kind} ${object.namespace}/${object.name} ${object.cause}`.toLowerCase().includes(text)),
    );
    const order = { False: 0, Unknown: 1, True: 2 };
    this.list.show(matching.toSorted((one, other) => order[one.ready] - order[other.ready] || key(one).localeCompare(key(other))));
    this.nothing.textContent = matching.length ? "" : all.length ? "No object is like that." : "The cluster has no object of the eight kinds yet.";
    const ready = matching.filter((object) => object.ready === "True").length;
    this.count.textContent = `${matching.length} of ${all.length} objects, ${ready} ready`;
  }

  private async choose(object: LiveObject): Promise<void> {
    this.opened = { object, document: "", written: "" };
    this.cause.textContent = object.cause;
    const back = button("‹ All objects", () => this.back(), { class: "quiet" });
    replace(
      this.about,
      back,
      h("h2", {}, h("span", { class: "kind" }, object.kind), " ", object.namespace ? `${object.namespace}/` : "", object.name),
      this.cause,
    );
    this.overview.hidden = true;
    this.about.hidden = false;
    this.element.classList.add("one");
    back.focus();
    await this.graph();
  }

  private back(): void {
    this.opened = null;
    replace(this.edit);
    this.overview.hidden = false;
    this.about.hidden = true;
    this.element.classList.remove("one");
    document.getElementById("live-list")?.focus();
  }

  private async graph(): Promise<void> {
    const { opened } = this;
    if (!opened || !this.shown) return;
    try {
      const graph = await this.stage.whileLoading(this.graphs.run((signal) => api.liveGraph(opened.object, signal)));
      if (graph === undefined || opened !== this.opened) return;
      this.report(null);
      const now = this.objects.get(key(opened.object)) ?? opened.object;
      this.cause.textContent = now.cause;
      const { manifest } = graph;
      const before = opened.written;
      opened.written = manifest.text;
      if (!opened.document) opened.document = this.open(manifest);
      else if (this.named(opened.document)?.text === before) this.write(opened.document, manifest.text);
      this.stage.show(graph, [{ ...manifest, name: opened.document }, ...graph.related], "");
    } catch (error) {
      this.report(error);
    }
  }
}

function row(object: LiveObject): HTMLElement {
  return h(
    "div",
    { class: "live-row", attrs: { title: object.cause || null } },
    truth(object.ready),
    h("span", { class: "live-name", attrs: { title: `${object.namespace}/${object.name}` } }, middle(`${object.namespace ? `${object.namespace}/` : ""}${object.name}`)),
    h("span", { class: "kind" }, object.kind),
    h("span", { class: "live-cause" }, object.cause),
  );
}

function key({ resource, namespace, name }: LiveObject): string {
  return `${namespace}/${name} ${resource}`;
}

/** Gives a choice these values besides the one for all; the choice stays as it is while it can. */
function choices(select: HTMLSelectElement, all: string, values: readonly string[]): void {
  const present = [...select.options].slice(1).map((option) => option.value);
  if (select.options.length && present.join("\n") === values.join("\n")) return;
  const { value } = select;
  const options = values.map((one) => h("option", { attrs: { value: one } }, one));
  replace(select, h("option", { attrs: { value: "" } }, all), ...options);
  select.value = values.includes(value) ? value : "";
}
