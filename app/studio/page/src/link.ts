/** The documents as a part of the address after `#`, which a browser never sends: deflated JSON in base64url. */

import type { Document } from "./types.js";

export interface Shared {
  documents: Document[];
  active: number;
  view: string;
}

const KEY = "s=";

export async function write(shared: Shared): Promise<string> {
  const text = JSON.stringify([shared.active, shared.view, shared.documents.map(({ name, text }) => [name, text])]);
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return KEY + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** What a fragment says, or null when it is none of ours or damaged. */
export async function read(fragment: string): Promise<Shared | null> {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(KEY)) return null;
  try {
    const binary = atob(text.slice(KEY.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const json = new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
    const [active, view, documents] = JSON.parse(json) as [number, string, [string, string][]];
    return { active, view, documents: documents.map(([name, text]) => ({ name: String(name), text: String(text) })) };
  } catch {
    return null;
  }
}

async function through(bytes: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
