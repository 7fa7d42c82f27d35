/** Requests to the studio that served this page. Its address has the token, and ours are relative to it. */

import type * as types from "./types.js";

/** A step of a simulation: its scenes and its number. */
export type Moment = Required<Pick<types.ObjectRequest, "scenes" | "step">>;

/** What went wrong, in words for the page. */
export class Problem extends Error {}

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`api/${path}`, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem("The studio does not answer. Is `modelhooks studio` still running? The documents are in this page's address, after #.");
  }
  if (!response.ok) throw new Problem((await response.text()).trim() || `The studio answered with status ${response.status}.`);
  return (await response.json()) as T;
}

type Signal = AbortSignal | null;

function get<T>(path: string, query: Record<string, string> = {}, signal: Signal = null): Promise<T> {
  const text = new URLSearchParams(query).toString();
  return ask<T>(text ? `${path}?${text}` : path, { signal });
}

function post<T>(path: string, body: unknown, signal: Signal): Promise<T> {
  return ask<T>(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
}

export const session = () => get<types.Session>("session");
export const examples = () => get<types.Example[]>("examples");
export const settings = () => get<types.Setting[]>("settings");
export const schemas = () => get<Record<string, object>>("schemas");
export const scenes = () => get<types.SceneOption[]>("scenes");
export const check = (body: types.Manifests, signal: Signal) => post<types.PlacedFinding[]>("check", body, signal);
export const assumptions = (body: types.Manifests, signal: Signal) => post<string[]>("assumptions", body, signal);
export const graph = (body: types.GraphRequest, signal: Signal) => post<types.Graph>("graph", body, signal);
export const yaml = (body: types.ObjectRequest, signal: Signal) => post<types.Document>("yaml", body, signal);
export const origins = (body: types.OriginsRequest, signal: Signal) => post<types.ValueOrigin[]>("origins", body, signal);
export const fit = (body: types.FitRequest, signal: Signal) => post<types.ModelFit | null>("fit", body, signal);
export const simulate = (body: types.ScenesRequest, signal: Signal) => post<types.Simulation>("simulate", body, signal);
export const compare = (body: types.CompareRequest, signal: Signal) => post<types.Comparison>("compare", body, signal);
export const liveObjects = () => get<types.LiveObject[]>("live/objects");
export const liveGraph = (one: types.LiveObject, signal: Signal) =>
  get<types.LiveGraph>("live/graph", { resource: one.resource, namespace: one.namespace, name: one.name }, signal);
export const liveCompare = (text: string, signal: Signal) =>
  post<types.LiveComparison>("live/compare", { text }, signal);
export const liveEvents = () => new EventSource("api/live/events");

/** Runs one request at a time: a newer one ends the one before it, whose answer nobody waits for any more. */
export class Latest {
  private controller: AbortController | null = null;

  /** The answer, or undefined when a newer request came in between. */
  async run<T>(request: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.cancel();
    const controller = new AbortController();
    this.controller = controller;
    try {
      const answer = await request(controller.signal);
      return controller.signal.aborted ? undefined : answer;
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      throw error;
    }
  }

  cancel(): void {
    this.controller?.abort();
    this.controller = null;
  }
}
