"""How soon the page answers in Chromium: ``python -m tests.benchmarks.page [FOLDER]``, a folder that ``make web`` has built."""

import statistics
import sys
import threading
from pathlib import Path
from typing import Any

from advisor.plugins.web.serving import server_of

from ..browser import launched

LOADS = 3
KEYS = 7
LONGEST = 180_000

# Milliseconds from the start of the page until each answer stands in it.
LOADED = """() => new Promise((done) => {
  const seen = {}, marks = ["ready", "quick", "full", "matrix", "reserved"];
  const look = () => {
    for (const mark of marks) if (document.body.dataset[mark] && !(mark in seen)) seen[mark] = performance.now();
    if (marks.every((mark) => mark in seen)) done(seen);
  };
  new MutationObserver(look).observe(document.body, { attributes: true });
  look();
})"""

# Milliseconds from a key until each answer to it has been painted.
TYPED = """(text) => new Promise((done) => {
  const box = document.getElementById("config"), seen = {}, marks = ["quick", "full", "matrix", "reserved"];
  const start = performance.now();
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  const version = document.body.dataset.version;
  new MutationObserver(() => {
    for (const mark of marks) {
      if (document.body.dataset[mark] !== version || mark in seen) continue;
      seen[mark] = 0;
      requestAnimationFrame(() => setTimeout(() => {
        seen[mark] = performance.now() - start;
        if (marks.every((each) => seen[each])) done(seen);
      }));
    }
  }).observe(document.body, { attributes: true });
})"""


def main(site: Path) -> None:
    """The least and the middle of several, served and from disk."""
    with launched() as browser, server_of(site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for place, address in (
            ("served", f"http://127.0.0.1:{server.server_port}/"),
            ("from disk", (site / "index.html").resolve().as_uri()),
        ):
            loads: list[dict[str, float]] = []
            keys: list[dict[str, float]] = []
            for _ in range(LOADS):
                tab = browser.new_context().new_page()
                loads.append(loaded(tab, address))
                keys += typed(tab)
                tab.context.close()
            told(f"{place}: page opened", loads)
            told(f"{place}: a key typed", keys)
        server.shutdown()


def loaded(tab: Any, address: str) -> dict[str, float]:
    """One start, nothing in the browser's cache."""
    tab.set_default_timeout(LONGEST)
    tab.goto(address, wait_until="commit")
    tab.wait_for_selector("body")
    return tab.evaluate(LOADED)


def typed(tab: Any) -> list[dict[str, float]]:
    """Several keys, each after the answers to the last."""
    text = tab.input_value("#config")
    changes = [text.replace("sequence_len: 2048", f"sequence_len: {2048 + 64 * key}") for key in range(1, KEYS + 1)]
    return [tab.evaluate(TYPED, change) for change in changes]


def told(what: str, rows: list[dict[str, float]]) -> None:
    """One line: the least, and in parentheses the median."""
    parts = ((mark, [row[mark] / 1000 for row in rows]) for mark in rows[0])
    said = (f"{mark} {min(each):.2f} ({statistics.median(each):.2f}) s" for mark, each in parts)
    print(f"{what + ':':26}{', '.join(said)}; least (median) of {len(rows)}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "site/web"))
