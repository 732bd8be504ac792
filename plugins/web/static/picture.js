// The verdict as a PNG, drawn by hand: 1200 by 630, as previews of links are.
const WIDE = 1200, HIGH = 630, EDGE = 64;
const COLOURS = { fits: "#11704a", tight: "#8a5a00", "does-not-fit": "#b3203a", unknown: "#163f75" };
const FONT = "system-ui, sans-serif";

/** Lines of a text, no wider than there is room for. */
function wrapped(canvas, text, most) {
  const lines = [];
  for (const part of text.split("\n")) {
    let line = "";
    for (const word of part.split(" ")) {
      const longer = line ? `${line} ${word}` : word;
      if (line && canvas.measureText(longer).width > most) {
        lines.push(line);
        line = word;
      } else line = longer;
    }
    lines.push(line);
  }
  return lines;
}

/** Writes a text and says where the next one goes. */
function say(canvas, text, y, size, weight, colour, most = 4) {
  canvas.font = `${weight} ${size}px ${FONT}`;
  canvas.fillStyle = colour;
  for (const line of wrapped(canvas, text, WIDE - 2 * EDGE).slice(0, most)) {
    canvas.fillText(line, EDGE, y);
    y += size * 1.3;
  }
  return y;
}

/** What is needed as a bar against the card's line. */
function bar(canvas, words, needed, { usable, most }, y, colour) {
  const scale = (WIDE - 2 * EDGE) / most;
  canvas.fillStyle = "#eef1f5";
  canvas.fillRect(EDGE, y, WIDE - 2 * EDGE, 34);
  canvas.fillStyle = colour;
  canvas.fillRect(EDGE, y, needed * scale, 34);
  canvas.fillStyle = "#16191d";
  canvas.fillRect(EDGE + usable * scale - 2, y - 6, 4, 46);
  canvas.font = `600 20px ${FONT}`;
  const isInside = needed * scale > 320;
  const end = (needed < usable && usable - needed < 220 / scale ? usable : needed) * scale + 14;
  canvas.fillStyle = isInside ? "#fff" : "#16191d";
  canvas.fillText(`${words} ${needed.toFixed(1)} GiB`, EDGE + (isInside ? 12 : end), y + 24);
  return y + 58;
}

/** @param {{role: string, headline: string, action: string, about: string, needed: number?, usable: number?, after: number?}} said */
function drawn(said) {
  const board = document.createElement("canvas");
  board.width = WIDE;
  board.height = HIGH;
  const canvas = board.getContext("2d"), colour = COLOURS[said.role] ?? COLOURS.unknown;
  canvas.fillStyle = "#fff";
  canvas.fillRect(0, 0, WIDE, HIGH);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 16, HIGH);
  let y = say(canvas, said.headline, 104, 46, 700, colour, 3);
  y = say(canvas, said.action, y + 8, 30, 400, "#16191d", 3);
  y = say(canvas, said.about, y + 4, 22, 400, "#59626d", 2) + 14;
  if (said.needed !== null && y < HIGH - 190) {
    const scale = { usable: said.usable, most: Math.max(said.needed, said.usable) * 1.02 };
    y = bar(canvas, "now", said.needed, scale, y, said.needed > said.usable ? "#b3203a" : "#3b76d6");
    if (said.after !== null) y = bar(canvas, "after", said.after, scale, y, "#3b76d6");
    say(canvas, `The line: ${said.usable.toFixed(1)} GiB usable on each GPU`, y + 4, 20, 400, "#59626d", 1);
  }
  say(canvas, "axolotl-advisor", HIGH - 34, 22, 700, "#1f5fbf", 1);
  return board;
}

function save(said) {
  drawn(said).toBlob((blob) => {
    const link = document.createElement("a");
    link.download = "verdict.png";
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
}
