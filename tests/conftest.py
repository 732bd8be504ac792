"""What many tests need: the corpus, if there is one, and a run from a few lines of YAML."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from advisor.documents import parse
from advisor.opening import Context, LoadedRun, open_run
from advisor.run import Run
from advisor.run.stack import read_stack

SLOW = {"corpus", "browser"}
"""Fixtures that no test of ``make test`` uses."""
LONGEST = (
    "test_verify.py",
    "test_many.py",
    "test_new_trains.py",
    "test_tapes.py",
    "test_bare_install.py",
    "test_rule_guards.py",
    "test_page.py",
    "test_corpus.py",
    "test_answers.py",
    "test_matrix.py",
    "test_work_grows_with_the_input.py",
)
"""Files that take minutes: begun first, so that no worker is left with one of them at the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that read real configs, or start a browser, are slow ones."""
    for item in items:
        if SLOW & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="session", autouse=True)
def folders_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither traces nor measured runs of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
            patched.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder with real configs, facts and measured runs; the test is skipped without it."""
    folder = os.environ.get("ADVISOR_CORPUS")
    if not folder:
        pytest.skip("ADVISOR_CORPUS is not set")
    return Path(folder)


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """Builds a run: ``make_run("base_model: ...", gpus="8x a100-80gb", deepspeed='{"...": 1}')``."""

    def make(
        text: str, gpus: str | None = "1x a100-80gb", deepspeed: str | None = None, stack: Mapping[str, object] = {}
    ) -> Run:
        return opened(tmp_path, text, gpus, deepspeed, stack).run

    return make


def opened(
    folder: Path, text: str, gpus: str | None = None, deepspeed: str | None = None, stack: Mapping[str, object] = {}
) -> LoadedRun:
    """The run of a YAML text that lies in ``folder``."""
    if deepspeed is not None:
        (folder / "ds.json").write_text(deepspeed)
        text += "\ndeepspeed: ds.json\n"
    path = folder / "config.yaml"
    path.write_text(text)
    context = Context(working_directory=str(folder), gpus=gpus, stack=read_stack(stack))
    return open_run(parse(path.read_bytes(), str(path), "yaml"), context)
