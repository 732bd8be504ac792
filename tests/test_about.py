"""The version and the address that the advisor says of itself are those of ``advisor/about.py``, wherever it says them."""

import json

import click.testing
import pytest
from advisor.plugins.language_server import server as language_server
from advisor.plugins.mcp import server as mcp_server

import advisor
from advisor import about
from advisor.cli.main import main
from advisor.report import render_check, render_estimate

from .report.samples import FITS


def driver() -> dict[str, str]:
    (run,) = json.loads(render_check([FITS], "sarif"))["runs"]
    return run["tool"]["driver"]


def test_python_and_the_command_say_it():
    assert advisor.__version__ == about.VERSION
    result = click.testing.CliRunner().invoke(main, ["--version"])
    assert result.output == f"advisor {about.VERSION}\n"


def test_sarif_says_it_and_where_the_advisor_lives():
    found = driver()
    assert found["version"] == found["semanticVersion"] == about.VERSION
    assert found["informationUri"] == about.REPOSITORY


@pytest.mark.parametrize("text", [render_check([FITS], "json"), render_estimate(FITS, "json")])
def test_the_json_says_it_next_to_the_version_of_the_format(text: str):
    found = json.loads(text)
    assert (found["version"], found["advisor"]) == (1, about.VERSION)


@pytest.mark.parametrize("text", [render_check([FITS], "html"), render_estimate(FITS, "html")])
def test_the_html_ends_with_it(text: str):
    assert text.endswith(f"advisor {about.VERSION}</p></footer></main></body></html>")


def test_the_servers_say_it():
    assert language_server.server_of(None).version == about.VERSION
    assert mcp_server.server_of(".", None).version == about.VERSION
