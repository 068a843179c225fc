// Test cases written by write_cases.py.

import { readFileSync } from "node:fs";

export const cases = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf-8"));
