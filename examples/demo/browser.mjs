// Reads ids with JSON.parse, as a browser does, and compares them with their text. Each input line is for one table, as
// browser.sql prints it.

import { readFileSync } from "node:fs";

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { table, ids, texts } = JSON.parse(line);
  const rows = new Set(texts);
  const read = ids.map((id) => BigInt(id).toString());
  const changed = read.filter((id, place) => id !== texts[place]);
  const others = changed.filter((id) => rows.has(id));
  console.log(
    `${table}: ${changed.length} of ${ids.length} ids became others; ${others.length} of these name another of the rows`,
  );
}
