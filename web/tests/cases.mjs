// What write_cases.py wrote.

import { readFileSync } from "node:fs";

export const cases = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf-8"));
