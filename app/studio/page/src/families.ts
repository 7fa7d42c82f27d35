/** The families and how they write their names. */
export const FAMILIES = { llmkube: "LLMKube", llmaz: "llmaz", kserve: "KServe" } as const;
