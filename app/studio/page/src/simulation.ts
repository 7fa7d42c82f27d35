/** What happens, and when: scenes to choose from, a slider through the moments, and what the parents say at each. */

import * as api from "./api.js";
import { button, h, replace } from "./dom.js";
import type { Stage } from "./stage.js";
import { pill } from "./states.js";
import type { Document, ParentReadiness, SceneOption, Simulation, Step } from "./types.js";

const PACE = 700;
/** What is not ready stands first. */
const RANK: Record<ParentReadiness["ready"], number> = { False: 0, Unknown: 1, True: 2 };

export class SimulationView {
  readonly element: HTMLElement;
  private readonly latest = new api.Latest();
  private readonly scenes = h("fieldset", { class: "scenes" });
  private readonly slider = h("input", {
    class: "slider",
    attrs: { type: "range", min: 0, max: 0, value: 0, disabled: true, "aria-label": "Moment" },
    on: { input: () => this.at(Number(this.slider.value)) },
  });
  /** A point below the slider at each moment in which something fails. */
  private readonly marks = h("div", { class: "marks", attrs: { "aria-hidden": "true" } });
  private readonly moment = h("p", { class: "moment", attrs: { role: "status" } });
  private readonly statuses = h("div", { class: "statuses" });
  private readonly notes = h("ul", { class: "notes" });
  private readonly player: HTMLButtonElement;
  private readonly chosen = new Set<string>();
  private simulation: Simulation = { steps: [], notes: [], opens: 0 };
  private documents: readonly Document[] = [];
  /** The scenes of the simulation that is shown. */
  private played: readonly string[] = [];
  private playing: number | undefined;

  constructor(
    private readonly stage: Stage,
    private readonly report: (error: unknown) => void,
    private readonly current: () => readonly Document[],
  ) {
    this.player = button("▶", () => this.play(), { class: "icon", attrs: { "aria-label": "Play" } });
    const step = (text: string, label: string, by: number): HTMLElement =>
      button(text, () => this.at(Number(this.slider.value) + by), { class: "icon", attrs: { "aria-label": label } });
    const time = h(
      "div",
      { class: "time" },
      step("‹", "Previous moment", -1),
      this.player,
      step("›", "Next moment", 1),
      h("div", { class: "track" }, this.slider, this.marks),
    );
    this.element = h("div", { class: "simulation" }, this.scenes, this.notes, time, this.moment, this.statuses);
  }

  offer(scenes: readonly SceneOption[]): void {
    const choices = scenes.map((scene) => {
      const box = h("input", {
        attrs: { type: "checkbox", value: scene.name },
        on: {
          change: () => {
            if (box.checked) this.chosen.add(scene.name);
            else this.chosen.delete(scene.name);
            void this.run();
          },
        },
      });
      return h("label", { class: "scene", attrs: { title: scene.description } }, box, h("span", {}, scene.title));
    });
    replace(this.scenes, h("legend", {}, "What happens"), ...choices);
  }

  async run(): Promise<void> {
    this.pause();
    const [documents, scenes] = [this.current(), [...this.chosen]];
    try {
      const answer = await this.stage.whileLoading(
        this.latest.run((signal) => api.simulate({ documents, scenes }, signal)),
      );
      if (answer === undefined) return;
      this.report(null);
      this.simulation = answer;
      this.documents = documents;
      this.played = scenes;
      replace(this.notes, ...answer.notes.map((note) => h("li", {}, note)));
      this.slider.max = String(Math.max(answer.steps.length - 1, 0));
      this.mark(answer.steps);
      this.at(answer.opens);
    } catch (error) {
      this.report(error);
    }
  }

  leave(): void {
    this.pause();
    this.latest.cancel();
  }

  private mark(steps: readonly Step[]): void {
    const marks = steps.map((step, index) => {
      const mark = h("span", {});
      mark.style.setProperty("--place", String(index / Math.max(steps.length - 1, 1)));
      return fails(step) ? mark : null;
    });
    replace(this.marks, ...marks);
  }

  private at(index: number): void {
    const { steps } = this.simulation;
    const place = Math.min(Math.max(index, 0), steps.length - 1);
    const step = steps[place];
    this.slider.value = String(Math.max(place, 0));
    this.slider.disabled = steps.length < 2;
    if (!step) {
      this.moment.textContent = "";
      replace(this.statuses);
      this.stage.show({ nodes: [], edges: [] }, this.documents, "Nothing to simulate: no object here is of a kind that is served.");
      return;
    }
    const text = `${clock(step.seconds)} · ${step.title}${fails(step) ? " · something fails" : ""}`;
    this.slider.setAttribute("aria-valuetext", text);
    replace(
      this.moment,
      h("span", { class: "clock" }, clock(step.seconds)),
      h("span", {}, step.title),
      h("span", { class: "muted" }, `${place + 1} of ${steps.length}`),
    );
    const worst = step.parents.toSorted((one, other) => RANK[one.ready] - RANK[other.ready]);
    replace(this.statuses, ...worst.map((parent) => status(parent, step)));
    this.stage.show(step.graph, this.documents, "", { scenes: this.played, step: place });
  }

  private play(): void {
    if (this.playing !== undefined) return this.pause();
    const last = this.simulation.steps.length - 1;
    if (Number(this.slider.value) >= last) this.at(0);
    this.player.textContent = "❚❚";
    this.player.setAttribute("aria-label", "Pause");
    this.playing = window.setInterval(() => {
      this.at(Number(this.slider.value) + 1);
      if (Number(this.slider.value) >= last) this.pause();
    }, PACE);
  }

  private pause(): void {
    window.clearInterval(this.playing);
    this.playing = undefined;
    this.player.textContent = "▶";
    this.player.setAttribute("aria-label", "Play");
  }
}

function status({ node, ready, reason, message }: ParentReadiness, { graph }: Step): HTMLElement {
  const { kind, name, state } = graph.nodes.find(({ id }) => id === node) ?? { kind: "", name: node, state: "waiting" };
  return h(
    "div",
    { class: `parent-status ${state}` },
    pill(state),
    h("span", { class: "status-name" }, h("span", { class: "kind" }, kind), " ", name),
    h("code", {}, `Ready: ${ready}${reason ? ` · ${reason}` : ""}`),
    h("p", {}, message),
  );
}

function fails({ graph }: Step): boolean {
  return graph.nodes.some(({ state }) => state === "failing");
}

function clock(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}
