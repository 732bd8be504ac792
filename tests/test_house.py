"""The way of the data through the house: which floor may import which, and what lies loose on the main floor."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = {
    "about": "the version, and where the repository lives",
    "errors": "what goes wrong with an input: file, line, remedy",
    "record": "`@record`: frozen dataclasses, made quickly",
    "util": "plain values, bytes as GiB",
    "streams": "standard input, output and error: closed or full, they stop nothing",
    "progress": "what is being done, on a terminal",
    "documents": "text -> values that know their place; edits -> text, comments and layout kept; which files are configs",
    "hardware": "the GPUs: catalogue, names, detection",
    "models": "the architectures: catalogue, families, parts",
    "run": "Documents -> `Run`: one training run in the field's own terms; `axolotl/` and `deepspeed/` read and write",
    "memory": "`Run` -> `Estimate`: phases of terms, in bytes",
    "allocations": "`Run` -> the order in which a step allocates, replayed through torch's allocator",
    "speed": "`Run` -> `StepTime`: kernels, links, host and optimizer, in seconds",
    "learning": "`Run` -> what decides how it learns: the usual values by method and size, the learning rate of an adapter",
    "datasets": "a file of rows -> what they are, how axolotl reads them, how long they are; what an entry makes of them",
    "tracing": "what the formulas do not know, asked of transformers in a process of its own",
    "opening": "files -> `Run`: finds the JSON, the model and the hardware that a YAML means",
    "engine": "`Run`, `Estimate` -> findings, each with its edits: rules, plan, fixes, suppressions",
    "schemas": "what axolotl and DeepSpeed accept: key tables; `validate/` asks the installed ones",
    "settings": "`advisor.toml`, `pyproject.toml`, the environment",
    "session": "the one way in: config, options, settings, hardware and stack -> everything that is found",
    "new": "a model, rows and GPUs -> a complete config in each kind of training, and which of them to take",
    "report": "findings -> screen and formats, one module each",
    "accuracy": "measured runs and their estimates; the ranges that follow from them",
    "cli": "the commands, a module each; `prompt/`, `question/`, `launchers/`, `crash_log/`, `verifying/`",
    "api": "the same from Python",
    "__init__": "the public names",
    "__main__": "`python -m advisor`",
}
"""From the ground up: nothing imports what stands below it in this list."""
ABOVE = ("rules", "plugins")
"""What the advisor finds by folder and by entry point, and never imports."""
LOOSE = {"__init__", "__main__", "about", "api", "errors", "progress", "record", "streams", "util"}


def modules() -> dict[str, Path]:
    """Every module of the wheel by its dotted name."""
    found: dict[str, Path] = {}
    for folder, prefix in (("advisor", ""), ("rules", "rules."), ("plugins", "plugins.")):
        for path in (ROOT / folder).rglob("*.py"):
            name = prefix + ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
            found[name.removesuffix(".__init__") if name != "__init__" else name] = path
    return found


MODULES = modules()


def imports(name: str, *, types: bool = False) -> Iterator[str]:
    """The modules of the advisor that a module imports, in functions too; with ``types`` for type checkers as well."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    typing: set[ast.AST] = set()
    for block in () if types else ast.walk(tree):
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            typing.update(ast.walk(block))
    for node in ast.walk(tree):
        if node in typing or not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        package, _, inner = node.module.partition(".")
        if package == "advisor":
            for alias in node.names:
                full = f"{inner}.{alias.name}" if inner else alias.name
                yield full if full in MODULES else inner or "__init__"


def floor(name: str) -> str:
    """The package or loose module that a module belongs to."""
    return name.partition(".")[0]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_imports_what_stands_above_it(name: str):
    order = [*FLOORS, *ABOVE]
    here = order.index(floor(name))
    upward = [target for target in imports(name) if order.index(floor(target)) > here]
    assert not upward, f"{name} imports {', '.join(upward)}, which stand above it: move one of them, or what both need"


def test_the_main_floor_has_no_new_loose_module():
    loose = {path.stem for path in (ROOT / "advisor").glob("*.py")}
    assert loose == LOOSE, "put it into a package; a new loose module needs a line here and in FLOORS"
    packages = {path.parent.name for path in (ROOT / "advisor").glob("*/__init__.py")}
    assert packages | loose == set(FLOORS)


def test_no_modules_import_each_other_in_a_circle():
    arrows = {name: set(imports(name)) - {name} for name in MODULES}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_architectures_and_terms_know_each_other_in_no_circle_not_even_by_their_types():
    here = {name for name in MODULES if floor(name) in {"models", "memory", "run", "opening", "engine", "session"}}
    arrows = {name: here.intersection(imports(name, types=True)) - {name} for name in here}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_package_has_each_name_of_a_class_once():
    homes: dict[tuple[str, str], list[str]] = {}
    for name, path in MODULES.items():
        if floor(name) in FLOORS:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault((floor(name), node.name), []).append(name)
    assert {key: found for key, found in homes.items() if len(found) > 1} == {}


def test_rules_and_plugins_are_found_never_imported():
    users = [name for name in MODULES if floor(name) in FLOORS and any(floor(t) in ABOVE for t in imports(name))]
    assert users == []


def test_rules_run_through_one_door():
    """Trust is decided in front of it; `advisor test` runs the folder that was named."""
    users = {name for name in MODULES if "organisation_rules" in calls(name)}
    assert users == {"session.rule_selection", "cli.rule"}
    assert {name for name in MODULES if "Pack" in calls(name)} == {"settings.trust"}


def test_git_is_asked_through_one_door():
    """Which runs nothing that a repository names."""
    assert {name for name in MODULES if "git" in programs(name)} == set()
    assert "program" in calls("documents.git")


def calls(name: str) -> set[str]:
    """The functions that a module calls by their names."""
    nodes = ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8")))
    return {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def programs(name: str) -> set[str]:
    """The first words of the lists of a module, which are what a process is started of."""
    lists = (
        node for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))) if isinstance(node, ast.List)
    )
    firsts = (node.elts[0] for node in lists if node.elts)
    return {str(first.value) for first in firsts if isinstance(first, ast.Constant)}


def test_contributing_has_the_same_floors():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [f"| `advisor/{name}{'.py' if name in LOOSE else '/'}` | {what} |" for name, what in FLOORS.items()]
    missing = [row for row in rows if row not in text]
    assert not missing, "\n".join(["CONTRIBUTING.md lacks:", *missing])


ROOMS = ("allocator", "autograd", "losses", "layers", "vision", "step")
"""Of the allocations, from the ground up."""


def test_no_room_of_the_allocations_imports_one_above_it():
    inside = [name for name in MODULES if name.startswith("allocations.") and name.count(".") == 2]
    upward = {
        f"{name} -> {target}"
        for name in inside
        for target in imports(name)
        if target.count(".") == 2
        and target.startswith("allocations.")
        and ROOMS.index(target.split(".")[1]) > ROOMS.index(name.split(".")[1])
    }
    assert upward == set()
    assert {name.split(".")[1] for name in inside} == set(ROOMS)


SHARED_OF_CLI = {"cli.group", "cli.options", "cli.output", "cli.inputs"}
"""What commands share; and folders such as ``cli.launchers``."""


def test_no_plugin_imports_a_commands_module():
    doors = {
        (name, target)
        for name in MODULES
        if name.startswith("plugins.")
        for target in imports(name)
        if target.startswith("cli.") and target.count(".") == 1 and target not in SHARED_OF_CLI
    }
    folders = {name.rpartition(".")[0] for name in MODULES}
    assert sorted((name, target) for name, target in doors if target not in folders) == []
