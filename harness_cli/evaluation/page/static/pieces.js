// Compressed pieces of the page, decoded when they are first asked for and then kept.
const opened = new Map();

function piece(name) {
  if (!opened.has(name)) opened.set(name, decoded(name));
  return opened.get(name);
}

async function decoded(name) {
  const holder = $(name);
  if (!holder) throw new Error("the page lacks its piece " + name);
  const bytes = Uint8Array.from(atob(holder.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

// Every `{"$": [piece, index]}` in a value replaced by the text it stands for.
async function whole(value) {
  if (Array.isArray(value)) return Promise.all(value.map(whole));
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value.$)) return (await piece("x" + value.$[0]))[value.$[1]];
  const filled = {};
  for (const [name, inner] of Object.entries(value)) filled[name] = await whole(inner);
  return filled;
}

async function details(row) {
  if (!row.at) return null;
  return whole((await piece("t" + row.at[0]))[row.at[1]]);
}
