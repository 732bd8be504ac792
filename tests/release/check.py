"""``make release-check``: the tag of this version in a clone, and every line that a user copies, run from that tag."""

import re
import sys
import time
from collections.abc import Callable, Iterator

import yaml

from advisor.about import REPOSITORY, VERSION

from ..plugins.runner import Job
from .lines import first_block, installs, snippets
from .places import ROOT
from .ready import dated, disagreements
from .user import TAG, BrokenLineError, User, user

HEAVY = frozenset({"axolotl", "deepspeed", "trace"})
"""Extras that bring torch or transformers; that they exist is tested."""


def readme(someone: User) -> None:
    """The first block of the README, as it stands."""
    home = someone.environment("readme")
    someone.shell(first_block(someone.clone), someone.place("readme", "run.yaml"), home)
    said = someone.shell("advisor --version", someone.folder, home)
    if said != f"advisor {VERSION}\n":
        raise BrokenLineError(said)


def from_the_tag(requirement: str) -> Callable[[User], None]:
    """Another line that installs from the tag, into an environment of its own."""

    def run(someone: User) -> None:
        home = someone.environment(re.sub(r"\W+", "-", requirement.partition(" @ ")[0]))
        someone.shell(f'pip install --quiet "{requirement}"\nadvisor --version', someone.folder, home)

    return run


def extra(requirement: str) -> Callable[[User], None]:
    """An extra, asked for by the name of the package once the package is there."""

    def run(someone: User) -> None:
        someone.shell(f'pip install --quiet "{requirement}"\npip check', someone.folder, someone.environment("readme"))

    return run


def gitlab(someone: User) -> None:
    """The script of the job."""
    name = ".gitlab-ci.yml"
    job = snippets(someone.clone)[name]["advisor"]
    work = someone.place("gitlab", "configs/run.yaml")
    someone.shell("\n".join(job["script"]), work, someone.environment("gitlab"))
    if not (work / job["artifacts"]["reports"]["codequality"]).is_file():
        raise BrokenLineError("no report")


def pre_commit(someone: User) -> None:
    """The hook, run by pre-commit on a repository that has a config."""
    name = ".pre-commit-config.yaml"
    work = someone.place("pre-commit", "run.yaml", **{name: yaml.safe_dump(snippets(someone.clone)[name])})
    program = f"{sys.executable} -m pre_commit"
    script = f"export PRE_COMMIT_HOME={someone.folder}/hooks\ngit init -q\ngit add .\n{program} run --all-files"
    if "Passed" not in (said := someone.shell(script, work)):
        raise BrokenLineError(said)


def action(someone: User) -> None:
    """The action of the workflow, fetched by its tag as the runner fetches it, with the workflow's inputs."""
    *_, step = snippets(someone.clone)[".github/workflows/advisor.yml"]["jobs"]["advisor"]["steps"]
    name, _, tag = step["uses"].partition("@")
    folder = someone.folder / "action"
    someone.shell(f"git clone -q --depth 1 --branch {tag} https://github.com/{name} {folder}", someone.folder)
    work = someone.place("action", "configs/run.yaml")
    (work.parent / "output").touch()
    inputs = {key: value for key, value in step["with"].items() if "${{" not in value}
    job = Job(work, inputs, event="push", folder=folder)
    for part in ("Install", "Check", "Verdict"):
        done = job.step(part)
        if done.returncode != 0:
            raise BrokenLineError(f"{part}: {(done.stdout + done.stderr)[-3000:]}")


def demo(someone: User) -> None:
    """The verb that the README names for a checkout."""
    said = someone.shell("make demo", someone.clone)
    if "fits" not in said.rpartition("$ advisor ")[2].lower():
        raise BrokenLineError(said)


def steps() -> Iterator[tuple[str, Callable[[User], None] | None]]:
    """All that is copied, each requirement once; None for what is not run."""
    yield "README.md, install and check", readme
    seen = {first_block(ROOT).split()[2]}
    for line in installs(ROOT):
        where = f"{line.file}:{line.line}, {line.command}"
        if line.kind == "checkout" or line.requirement in seen:
            continue
        seen.add(line.requirement)
        if HEAVY & set(line.extras):
            yield where, None
        else:
            yield where, extra(line.requirement) if line.kind == "extra" else from_the_tag(line.requirement)
    yield "site, .gitlab-ci.yml", gitlab
    yield "site, .pre-commit-config.yaml", pre_commit
    yield "site, .github/workflows/advisor.yml", action
    yield "README.md, make demo", demo


def main() -> int:
    """0 where every line works; 1 with the first that does not."""
    wrong = [*disagreements(ROOT), *dated(ROOT)]
    if wrong:
        print("\n".join(f"error: {each}" for each in wrong), file=sys.stderr)
        return 1
    with user() as someone:
        print(f"{TAG} in a clone of HEAD, in the place of {REPOSITORY}", flush=True)
        for name, run in steps():
            if run is None:
                print(f"  left out  {name}: brings torch or transformers", flush=True)
                continue
            start = time.monotonic()
            try:
                run(someone)
            except BrokenLineError as error:
                print(f"  broken    {name}\n{error}", file=sys.stderr)
                return 1
            print(f"  {time.monotonic() - start:6.1f} s  {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
