/** The JSON schemas of the served kinds, as completion and hover ask them. */

import { ITEM } from "./yamlpath.js";

export interface Schema {
  $ref?: string;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  title?: string;
  description?: string;
  type?: string | string[];
  format?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  required?: string[];
  items?: Schema;
  definitions?: Record<string, Schema>;
}

export class Schemas {
  private readonly byKind = new Map<string, Schema>();

  constructor(readonly all: readonly Schema[]) {
    for (const schema of all) {
      const { apiVersion, kind } = schema.properties ?? {};
      if (apiVersion?.const && kind?.const) this.byKind.set(`${apiVersion.const} ${kind.const}`, schema);
    }
  }

  /** Served kinds as apiVersion and kind. */
  kinds(): [string, string][] {
    return [...this.byKind.keys()].map((key) => key.split(" ") as [string, string]);
  }

  /** All schemas that hold for a value; empty where nothing is known. */
  at(apiVersion: string | null, kind: string | null, path: readonly string[]): Schema[] {
    const root = this.byKind.get(`${apiVersion} ${kind}`);
    if (!root) return [];
    let here = flat(root, root);
    for (const segment of path) here = here.flatMap((schema) => below(schema, segment)).flatMap((one) => flat(root, one));
    return here;
  }
}

function below(schema: Schema, segment: string): Schema[] {
  if (segment === ITEM) return schema.items ? [schema.items] : [];
  const named = schema.properties?.[segment];
  if (named) return [named];
  return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
}

/** A schema with all that it refers to and combines, to a bounded depth. */
function flat(root: Schema, schema: Schema, depth = 0): Schema[] {
  if (depth > 8) return [];
  const referred = schema.$ref ? root.definitions?.[schema.$ref.replace("#/definitions/", "")] : undefined;
  const parts = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(referred ? [referred] : [])];
  return [schema, ...parts.flatMap((part) => flat(root, part, depth + 1))];
}

export function properties(schemas: readonly Schema[]): Map<string, Schema> {
  return new Map(schemas.flatMap((schema) => Object.entries(schema.properties ?? {})).toReversed());
}

export function first<T>(schemas: readonly Schema[], of: (schema: Schema) => T | undefined): T | undefined {
  for (const schema of schemas) {
    const value = of(schema);
    if (value !== undefined) return value;
  }
  return undefined;
}

export function typeOf(schemas: readonly Schema[]): string {
  const type = first(schemas, (schema) => schema.type);
  const text = Array.isArray(type) ? type.join(" or ") : (type ?? "any");
  const item = first(schemas, (schema) => schema.items)?.type;
  return text === "array" && typeof item === "string" ? `list of ${item}s` : text === "array" ? "list" : text;
}

/** The values that a field may have, where they are few. */
export function values(schemas: readonly Schema[]): string[] {
  const listed = first(schemas, (schema) => schema.enum);
  if (listed) return listed.map(String);
  const only = first(schemas, (schema) => schema.const);
  if (only !== undefined) return [String(only)];
  if (first(schemas, (schema) => schema.type) === "boolean") return ["true", "false"];
  return [];
}
