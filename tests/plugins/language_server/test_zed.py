"""The extension for Zed: its files have the shape that Zed's documentation asks for, and the names that our README says."""

import json
import re
from pathlib import Path

from advisor.util import toml_library

PLUGINS = Path(__file__).parents[3] / "plugins"
MANIFEST = ("id", "name", "version", "schema_version", "authors", "description", "repository")
"""zed.dev/docs/extensions/developing-extensions, "Directory structure"."""


def test_the_manifest_registers_the_server_for_both_kinds_of_file():
    manifest = toml_library().loads((PLUGINS / "zed" / "extension.toml").read_text())
    assert all(manifest[key] for key in MANIFEST) and manifest["schema_version"] == 1
    assert manifest["language_servers"]["advisor"]["languages"] == ["YAML", "JSON"]
    cargo = toml_library().loads((PLUGINS / "zed" / "Cargo.toml").read_text())
    assert cargo["lib"]["crate-type"] == ["cdylib"] and "zed_extension_api" in cargo["dependencies"]
    assert cargo["package"]["version"] == manifest["version"]


def test_the_settings_of_the_readme_are_those_that_the_extension_reads():
    text = (PLUGINS / "language_server" / "README.md").read_text()
    found = re.search(r"```jsonc\n(.*?)```", text, re.DOTALL)
    assert found
    settings = json.loads(found[1])
    assert settings["lsp"]["advisor"].keys() == {"binary", "initialization_options"}
    assert settings["lsp"]["advisor"]["binary"]["arguments"] == ["server"]
    assert settings["languages"].keys() == {"YAML", "JSON"}
    source = (PLUGINS / "zed" / "src" / "lib.rs").read_text()
    assert 'which("advisor")' in source and '"server"' in source and ".initialization_options" in source
