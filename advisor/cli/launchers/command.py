"""A launch command -> which config it trains, with which overrides, on how many processes."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.cli.launchers.launchers import (
    FLAGS,
    MODULES,
    Scale,
    from_environment,
    launcher_named,
    scale_of,
    with_flags,
)
from advisor.cli.launchers.scripts import script_in, trained_by
from advisor.cli.launchers.training import Command
from advisor.record import replace
from advisor.run.overrides import OF_THE_COMMAND
from advisor.util import regex

ASSIGNMENT = regex(r"[A-Za-z_]\w*=")
YAML = (".yml", ".yaml")
FILES = ("axolotl/cli/train.py", "scripts/finetune.py")
OTHER_WORK = ("prepare_ds_only", "inference", "merge_lora", "shard")
"""Options of scripts/finetune.py with which it trains nothing."""


def read_command(tokens: Sequence[str]) -> Command:
    """Reads a command from its outermost launcher, or shell, to axolotl's own arguments."""
    return _read_from(tokens, {}, Scale(), 0)


def _read_from(tokens: Sequence[str], environment: Mapping[str, str], scale: Scale, depth: int) -> Command:
    """Reads a command in a script ``depth`` deep, which has ``environment`` and is started as ``scale`` says."""
    environment, reason = dict(environment), "the command does not run `axolotl train`"
    scale, launcher, start = around(from_environment({**os.environ, **environment}), scale), None, 0
    for index, token in enumerate(tokens):
        if ASSIGNMENT.match(token) and launcher in {None, "srun"}:
            name, _, value = token.partition("=")
            environment[name] = value
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if token == "axolotl" or token.endswith("/axolotl"):
            scale = flags(launcher, tokens[start:index], scale)
            return _axolotl_command(tokens[index + 1 :], scale, environment)
        if token in {"-m", "--module"} and following == "axolotl.cli.main":
            scale = flags(launcher, tokens[start:index], scale)
            return _axolotl_command(tokens[index + 2 :], scale, environment)
        if token in {"-m", "--module"} and following.startswith("axolotl.cli."):
            scale = flags(launcher, tokens[start:index], scale)
            return trained(following.rpartition(".")[2], tokens[index + 2 :], scale, environment)
        if token.endswith(FILES):
            return by_file(tokens[index + 1 :], flags(launcher, tokens[start:index], scale), environment)
        named = launcher_named(token) or MODULES.get(following if token == "-m" else "")
        if named is None and launcher in {None, "srun"} and (script := script_in(tokens, index)):
            outer = flags(launcher, tokens[start:index], scale)
            found = trained_by(script, _read_from, environment, outer, depth)
            if found.trains:
                return found
            reason = found.reason
        if named is not None:
            scale = flags(launcher, tokens[start:index], scale)
            launcher, start = named, index + 1
    return Command(scale=scale, environment=environment, reason=reason)


def around(inner: Scale, outer: Scale) -> Scale:
    """What variables say, under what a launcher around the script says."""
    return Scale(
        outer.nodes or inner.nodes,
        outer.per_node or inner.per_node,
        outer.total or inner.total,
        outer.devices or inner.devices,
    )


def by_file(tokens: Sequence[str], scale: Scale, environment: Mapping[str, str]) -> Command:
    """The file of a checkout in place of a module: ``scripts/finetune.py config.yml``."""
    given = options(tokens)[1]
    other = next((key for key in OTHER_WORK if given.get(key) not in {None, False, "False"}), "train")
    return trained(other, tokens, scale, environment)


def flags(launcher: str | None, tokens: Sequence[str], scale: Scale) -> Scale:
    """What one launcher's flags add. Inside srun's one task a node, the inner launcher starts the processes."""
    if launcher is None:
        return scale
    found = scale_of(launcher, tokens, Scale())
    if launcher == "srun" and found.nodes and found.total == found.nodes:
        found = replace(found, total=None)
    if launcher == "srun" and found.per_node == 1 and found.nodes:
        found = replace(found, per_node=None)
    nodes, devices = found.nodes or scale.nodes, found.devices or scale.devices
    if found.per_node or found.total:
        return Scale(nodes, found.per_node, found.total, devices)
    return replace(scale, nodes=nodes, devices=devices)


def _axolotl_command(tokens: Sequence[str], scale: Scale, environment: Mapping[str, str]) -> Command:
    """``axolotl train config.yml --key value -- --launcher-flag``."""
    own, inner = list(tokens), []
    if "--" in own:
        cut = own.index("--")
        own, inner = own[:cut], own[cut + 1 :]
    subcommand = next((token for token in own if not token.startswith("-")), "")
    rest = own[own.index(subcommand) + 1 :] if subcommand else []
    command = trained(subcommand, rest, scale, environment)
    launcher = str(options(rest)[1].get("launcher", "accelerate"))
    if command.cloud is not None:
        # What this machine says of processes does not count there.
        found = with_flags(launcher, inner, Scale()) if launcher in FLAGS else Scale()
        return replace(command, scale=Scale(1, 1) if launcher == "python" else found)
    found = scale_of("axolotl", rest, command.scale)
    if launcher in FLAGS:
        found = flags(launcher, inner, found)
    return replace(command, scale=replace(found, per_node=1, total=None) if launcher == "python" else found)


def trained(subcommand: str, tokens: Sequence[str], scale: Scale, environment: Mapping[str, str]) -> Command:
    """axolotl's own arguments: the config, and keys that override it."""
    if subcommand != "train":
        reason = f"`axolotl {subcommand}` trains nothing" if subcommand else "the command does not run `axolotl train`"
        return Command(scale=scale, environment=environment, reason=reason)
    config, given = options(tokens)
    config = config or str(given.pop("config", "")) or None
    reason = "" if config else "the command names no config"
    if "sweep" in given:
        reason = "a sweep trains many configs"
    elif config and "://" in config:
        reason = "the config is at a URL, which is not fetched"
    if reason:
        return Command(scale=scale, environment=environment, reason=reason, trains=True)
    overrides = {key: value for key, value in given.items() if key not in OF_THE_COMMAND}
    cloud = str(given["cloud"]) if "cloud" in given else None
    return Command(config, overrides, scale, environment, trains=True, cloud=cloud)


def options(tokens: Sequence[str]) -> tuple[str | None, dict[str, Any]]:
    """The config and the overrides, as click and fire read them: ``--a-b 1``, ``--a_b=1``, ``--on``, ``--no-on``."""
    config: str | None = None
    given: dict[str, Any] = {}
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if not token.startswith("--"):
            config = config or (None if token.startswith("-") else token)
            continue
        name, explicit, value = token[2:].partition("=")
        following = tokens[index] if index < len(tokens) else "--"
        if not explicit and not following.startswith("--") and not (config is None and following.endswith(YAML)):
            explicit, value = "=", following
            index += 1
        key, said = setting(name, value if explicit else None)
        if key:  # `--=` and `--no-` name none; the whole config would have that path
            given[key] = said
    return config, given


def setting(name: str, value: str | None) -> tuple[str, Any]:
    """One option as a dotted key of the config and its value, still a word."""
    key = name.replace("-", "_").replace("__", ".")
    if value is not None:
        return key, value
    return (key.removeprefix("no_"), False) if key.startswith("no_") else (key, True)
