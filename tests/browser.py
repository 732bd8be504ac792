"""A headless Chromium for the tests: the machine's own, in CI installed from Debian's packages, else a loud skip."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APT = ("apt-get", "-qq", "-o", "APT::Sandbox::User=root")


def found() -> str | None:
    """The browser of ``ADVISOR_BROWSER``, or of this machine."""
    return os.environ.get("ADVISOR_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


def missing(what: str) -> None:
    """Skips the test, with a line in pytest's summary that nobody can miss."""
    warnings.warn(pytest.PytestWarning(f"NOT TESTED in a browser: {what}"), stacklevel=2)
    pytest.skip(what)


def executable() -> str:
    """A Chromium. In CI one is installed if there is none."""
    with one_at_a_time("advisor-chromium"):
        if found() is None and os.environ.get("CI"):
            install()
    path = found()
    if path is None:
        missing("there is no Chromium: install one, or name it in ADVISOR_BROWSER")
    assert path is not None
    return path


def install() -> None:
    """Debian's package, and a font."""
    lead = [] if os.getuid() == 0 else ["sudo", "-n"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "TMPDIR": "/var/tmp"}
    for words in (("update",), ("install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core")):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([*lead, *APT, *words], env=environment, capture_output=True, timeout=500, check=False)


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Several processes run tests: only one of them installs."""
    with (Path(tempfile.gettempdir()) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def launched() -> Iterator[Any]:
    """Playwright's browser."""
    path = executable()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


AXE = "axe-core@4"
"""The newest of its rules for accessibility that npm has."""


def axe_core() -> str:
    """The source of axe-core, fetched by npm once for a machine; skips where there is no npm or no network."""
    folder = Path(tempfile.gettempdir()) / f"advisor-axe-{os.getuid()}"
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    with one_at_a_time("advisor-axe"):
        npm = shutil.which("npm")
        if not source.is_file() and npm is not None:
            words = [npm, "install", "--silent", "--ignore-scripts", "--no-save", "--prefix", str(folder), AXE]
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(words, capture_output=True, timeout=200, check=False)
    if not source.is_file():
        missing("npm cannot fetch axe-core")
    return source.read_text(encoding="utf-8")


CLIPPED = """() => {
  const bad = [], wide = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth > wide) bad.push("the page scrolls sideways");
  for (const node of document.querySelectorAll("body *")) {
    if (node.closest(".scroll") || node.closest("svg") || node.closest("textarea")) continue;
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    if (!box.width || !box.height || style.fontSize === "0px") continue;
    const name = node.tagName + ": " + node.textContent.slice(0, 40);
    if (box.right > wide + 1 || box.left < -1) bad.push("beyond the edge: " + name);
    const holds = /^(TD|TH)$/.test(node.tagName) || style.overflowX !== "visible";
    if (holds && node.scrollWidth > node.clientWidth + 1 && style.overflowX !== "auto") bad.push("cut: " + name);
  }
  return bad;
}"""
"""What of a page cannot be seen; what scrolls in a box of its own can."""

FAINT = """() => {
  const bad = [];
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = numbers(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  for (const node of document.querySelectorAll("body *")) {
    if (node.closest("svg")) continue;
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(node.tagName + "." + node.className + ": " + node.textContent.slice(0, 40));
  }
  return bad;
}"""
"""Text with less contrast than 4.5 to 1 (WCAG 2.2, 1.4.3)."""
