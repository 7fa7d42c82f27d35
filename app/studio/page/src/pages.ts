/** Pages of the documentation about what the studio shows. */

import { h } from "./dom.js";
import type { Session } from "./types.js";

let pages: Pick<Session, "docs" | "fields"> = { docs: "", fields: {} };

export function offer(session: Session): void {
  pages = session;
}

/** A link to the page about the fields of a kind; none for a kind that is not served. */
export function ofFields(apiVersion: string | null, kind: string | null): HTMLElement | null {
  const page = pages.fields[`${apiVersion}/${kind}`];
  return page ? link(page, `All fields of ${kind}`) : null;
}

/** A reason of a condition, as a link to the page that says what to do about it. */
export function ofReason(family: string, reason: string): HTMLElement {
  return link(family ? `troubleshooting/${family}.md` : "troubleshooting.md", reason);
}

function link(page: string, text: string): HTMLElement {
  return h("a", { attrs: { href: `${pages.docs}${page}`, target: "_blank", rel: "noreferrer" } }, text);
}
