"""Rules with one condition dropped: what their examples must notice."""

import ast
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from advisor.engine.example import Example
from advisor.engine.examples import differences, opened, outcome
from advisor.engine.rule import Rule
from advisor.run import Run

Put = Callable[[ast.expr], None]
ENTRIES = {"when", "finds"}
CHANGES = ("Change", "Set", "Remove", "Rename")


@dataclass(frozen=True)
class Condition:
    """An expression that decides something, and how to put another in its place."""

    function: str
    expression: ast.expr
    put: Put
    dropped: bool | None
    """Its value where it is dropped as a whole; None if only the operands of ``and`` and ``or`` are."""


@dataclass(frozen=True)
class Mutant:
    """A rule whose source lacks one clause."""

    clause: str
    rule: Rule


@dataclass(frozen=True)
class Guarded:
    """A rule's file, and the runs of its examples."""

    rule: Rule
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    def mutants(self) -> Iterator[Mutant]:
        """The rule without each clause in turn, or with each lone condition always true and always false."""
        names: Counter[str] = Counter()
        for condition in self.conditions():
            for change, expression in changes(condition):
                name = f"{self.rule.id}: {condition.function}: {change}"
                names[name] += 1
                name += f" (the {names[name]}. such)" if names[name] > 1 else ""
                condition.put(expression)
                yield Mutant(name, compiled(self.tree, self.path))
                condition.put(condition.expression)

    def conditions(self) -> Iterator[Condition]:
        """Those of ``when`` and ``finds``, and of the functions of the file that they reach, unless these only word."""
        functions = {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef) and decides(node)}
        for entry, value in self.entries():
            waiting: list[tuple[str, ast.AST]] = [(entry, value)]
            seen: set[str] = set()
            while waiting:
                name, node = waiting.pop(0)
                yield from conditions_in(entry, name, node)
                for other in outside_texts(node):
                    if isinstance(other, ast.Name) and other.id in functions and other.id not in seen:
                        seen.add(other.id)
                        waiting.append((other.id, functions[other.id]))

    def entries(self) -> Iterator[tuple[str, ast.AST]]:
        """What ``rule = Rule(...)`` gives as ``when`` or ``finds``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Rule":
                yield from ((key.arg, key) for key in node.keywords if key.arg in ENTRIES)

    def survivors(self) -> Iterator[str]:
        """The clauses that no example misses. ``AssertionError`` while an example fails with all of them in place."""
        with tempfile.TemporaryDirectory() as folder:
            runs = list(opened_examples(self.rule, Path(folder)))
            failing = [number for number, (example, run) in enumerate(runs, 1) if fails(self.rule, example, run)]
            assert not failing, f"examples {failing} of {self.rule.id} fail as they are: fix them first (make examples)"
            for mutant in self.mutants():
                if not any(fails(mutant.rule, example, run) for example, run in runs):
                    yield mutant.clause


def opened_examples(rule: Rule, folder: Path) -> Iterator[tuple[Example, Run]]:
    """The examples of a rule, each with its run."""
    for number, example in enumerate(rule.expanded):
        own = folder / str(number)
        own.mkdir()
        yield example, opened(example, own).run


def fails(rule: Rule, example: Example, run: Run) -> bool:
    """Whether an example does not do as it says; a rule that raises does not either."""
    try:
        after, memory = outcome(rule, run)
        if after is None or not example.expects_finding:
            return (after is not None) != example.expects_finding
        return any(differences(example, run, after, memory))
    except Exception:  # a mutant may raise anything
        return True


def compiled(tree: ast.Module, path: Path) -> Rule:
    """The rule of a changed source."""
    values: dict[str, Any] = {"__name__": "advisor_rule_mutant", "__file__": str(path)}
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), values)
    return values["rule"]


def conditions_in(entry: str, function: str, root: ast.AST) -> Iterator[Condition]:
    """What decides in a function: its ``if`` statements; of ``when``, also what its values join with ``and`` and ``or``.

    An ``if`` within an expression chooses words.
    """
    for node in ast.walk(root):
        match node:
            case ast.If():
                yield Condition(function, node.test, putter(node, "test"), not leaves(node))
            case ast.comprehension():
                yield from (
                    Condition(function, test, at(node.ifs, index), False) for index, test in enumerate(node.ifs)
                )
            case ast.Lambda() if entry == "when":
                yield Condition(function, node.body, putter(node, "body"), None)
            case ast.Return(value=ast.expr() as value) | ast.Assign(value=value):
                yield Condition(function, value, putter(node, "value"), None)
            case _:
                pass


def outside_texts(root: ast.AST) -> Iterator[ast.AST]:
    """Every node but those within an f-string: these word."""
    yield root
    for child in ast.iter_child_nodes(root):
        if not isinstance(child, ast.JoinedStr):
            yield from outside_texts(child)


def decides(function: ast.FunctionDef) -> bool:
    """Whether it says more than how a hit reads and what it changes."""
    returned = ast.unparse(function.returns) if function.returns else ""
    return returned != "Hit" and not any(name in returned for name in CHANGES)


def leaves(node: ast.If) -> bool:
    """Whether the branch only leaves."""
    return isinstance(node.body[0], ast.Return | ast.Continue)


def putter(node: ast.AST, field: str) -> Put:
    return lambda expression: setattr(node, field, expression)


def at(expressions: list[ast.expr], index: int) -> Put:
    return lambda expression: expressions.__setitem__(index, expression)


def changes(condition: Condition) -> Iterator[tuple[str, ast.expr]]:
    """Each change of a condition, in words and as an expression."""
    expression = condition.expression
    if isinstance(expression, ast.BoolOp):
        for index, operand in enumerate(expression.values):
            if not is_literal(operand):
                rest = [*expression.values[:index], *expression.values[index + 1 :]]
                yield f"without `{ast.unparse(operand)}`", joined(expression.op, rest)
    elif condition.dropped is not None:
        yield f"without `if {ast.unparse(expression)}`", ast.Constant(condition.dropped)


def joined(op: ast.boolop, operands: list[ast.expr]) -> ast.expr:
    return operands[0] if len(operands) == 1 else ast.BoolOp(op, operands)


def is_literal(node: ast.expr) -> bool:
    """Whether a default stands there, as in ``x or {}``."""
    return isinstance(node, ast.Constant | ast.Dict | ast.List | ast.Tuple | ast.Set)
