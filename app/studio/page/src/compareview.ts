/** Two versions of the manifests, or of a setting: what would change, and what the change does to running pods. */

import * as api from "./api.js";
import { comparison } from "./changes.js";
import { button, debounce, h, replace } from "./dom.js";
import type { Document, Setting } from "./types.js";

export class CompareView {
  readonly element: HTMLElement;
  private readonly latest = new api.Latest();
  private readonly result = h("div", { class: "result" });
  private readonly since = h("p", { class: "muted" });
  private readonly rows = h("div", { class: "settings" });
  private readonly names = h("select", { attrs: { "aria-label": "Setting" } });
  private readonly later = debounce(250, () => void this.run());
  private before: readonly Document[] = [];
  private readonly settings = new Map<string, [string, string]>();
  private known: readonly Setting[] = [];

  constructor(
    private readonly report: (error: unknown) => void,
    private readonly current: () => readonly Document[],
    private readonly revert: (documents: readonly Document[]) => void,
    private readonly jump: (document: string, line: number, column: number) => void,
  ) {
    const file = h("input", {
      attrs: { type: "file", multiple: true, accept: ".yaml,.yml", hidden: true },
      on: { change: () => void this.choose(file.files) },
    });
    const tools = h(
      "div",
      { class: "compare-bar" },
      button("Compare with this from now on", () => {
        this.keep(this.current(), "The earlier version is what the editor had a moment ago.");
        void this.run();
      }),
      button("Earlier version from files…", () => file.click()),
      file,
      button("Take the earlier version back", () => this.revert(this.before)),
    );
    const add = button("Add", () => this.add(this.names.value));
    const settings = h(
      "details",
      { class: "compare-settings" },
      h("summary", {}, "Settings of the service"),
      h("div", { class: "compare-bar" }, this.names, add),
      this.rows,
    );
    this.element = h("div", { class: "compare" }, this.since, tools, settings, this.result);
  }

  offer(settings: readonly Setting[]): void {
    this.known = settings;
    replace(this.names, ...settings.map(({ name }) => h("option", { attrs: { value: name } }, name)));
  }

  /** Makes these the earlier version. */
  keep(documents: readonly Document[], words: string): void {
    this.before = documents.map((document) => ({ ...document }));
    this.since.textContent = words;
  }

  async run(): Promise<void> {
    const [before, after] = [this.before, this.current()];
    const at = (index: 0 | 1): Record<string, string> =>
      Object.fromEntries([...this.settings].map(([name, values]) => [name, values[index]]));
    const body = { before, after, settingsBefore: at(0), settingsAfter: at(1) };
    try {
      this.element.setAttribute("aria-busy", "true");
      const answer = await this.latest.run((signal) => api.compare(body, signal));
      if (answer === undefined) return;
      this.element.setAttribute("aria-busy", "false");
      replace(this.result, comparison(answer, this.jump));
      this.report(null);
    } catch (error) {
      this.element.setAttribute("aria-busy", "false");
      replace(this.result);
      this.report(error);
    }
  }

  leave(): void {
    this.latest.cancel();
  }

  private async choose(files: FileList | null): Promise<void> {
    const read = [...(files ?? [])].map(async (file) => ({ name: file.name, text: await file.text() }));
    const documents = await Promise.all(read);
    if (!documents.length) return;
    this.keep(documents, `The earlier version is ${documents.map(({ name }) => name).join(", ")}.`);
    await this.run();
  }

  private add(name: string): void {
    const setting = this.known.find((one) => one.name === name);
    if (!setting || this.settings.has(name)) return;
    this.settings.set(name, [setting.default, setting.default]);
    const field = (index: 0 | 1, label: string): HTMLElement => {
      const input = h("input", {
        attrs: { value: setting.default, "aria-label": `${name}, ${label}`, placeholder: label, spellcheck: "false" },
        on: {
          input: () => {
            const values = this.settings.get(name);
            if (values) values[index] = input.value;
            this.later();
          },
        },
      });
      return input;
    };
    const row = h(
      "div",
      { class: "setting" },
      h("code", { attrs: { title: setting.description } }, name),
      field(0, "before"),
      h("span", { attrs: { "aria-hidden": "true" } }, "→"),
      field(1, "after"),
      button("✕", () => {
        this.settings.delete(name);
        row.remove();
        void this.run();
      }, { class: "icon", attrs: { "aria-label": `Remove ${name}` } }),
    );
    this.rows.append(row);
  }
}
