"""The smallest splices that turn a text's values into the new ones."""

from collections.abc import Iterable
from typing import Any, cast

from advisor.documents.block import Block, replace_in_block, replace_root
from advisor.documents.changes import Change, Path, Rename, as_path
from advisor.documents.draft import Additions, Draft, Slot, walk
from advisor.documents.node import Node, same
from advisor.documents.yaml_tree import is_merge
from advisor.documents.yaml_writer import scalar


def origins(changes: Iterable[Change]) -> dict[Path, Any]:
    """For every renamed key that is left: its path in the end, and what it was called at first."""
    found: dict[Path, Any] = {}
    for change in changes:
        if not isinstance(change, Rename):
            continue
        path = as_path(change.path)
        if not path:
            continue
        renamed = (*path[:-1], change.key)
        first = found.pop(path, path[-1])
        depth = len(path)
        found = {(*renamed, *at[depth:]) if at[:depth] == path else at: name for at, name in found.items()}
        found[renamed] = first
    return found


def reconcile(draft: Draft, node: Node, new: Any, slot: Slot, path: Path) -> None:
    """Splices after which the text at ``node`` holds ``new``, and every alias of it what it should."""
    if not draft.anchored and same(node.value, new):
        return
    if node.kind == "alias":
        target = id(node.resolved)
        if target not in draft.settled or not same(draft.settled[target], new):
            _replace(draft, node, new, slot)
        return
    if not _edited(draft, node, new, path):
        if not same(node.value, new):
            _replace(draft, node, new, slot)
            return
        settle(draft, node)
    draft.settled[id(node)] = new


def settle(draft: Draft, node: Node) -> None:
    """What stays as it is can still be named by aliases."""
    if draft.anchored:
        draft.settled |= {id(kept): kept.value for kept in walk(node)}


def _replace(draft: Draft, node: Node, new: Any, slot: Slot) -> None:
    if slot.kind == "root" and not draft.is_json:
        replace_root(draft, node, new)
    elif slot.kind == "flow" or draft.is_json:
        from advisor.documents.flow import replace_in_flow

        replace_in_flow(draft, node, new, slot)
    else:
        replace_in_block(draft, node, new, slot)


def _edited(draft: Draft, node: Node, new: Any, path: Path) -> bool:
    """Whether a collection could be changed in place, entry by entry."""
    if node.kind == "mapping" and isinstance(new, dict):
        return _edit_mapping(draft, node, cast("dict[Any, Any]", new), path)
    if node.kind == "sequence" and isinstance(new, list):
        return _edit_sequence(draft, node, cast("list[Any]", new), path)
    return False


def _edit_mapping(draft: Draft, node: Node, new: dict[Any, Any], path: Path) -> bool:
    entries = node.entries
    names = _names(draft, node, new, path)
    keep = [not is_merge(key) and names[i] in new for i, (key, _) in enumerate(entries)]
    # What a merge brings in is known once the anchors above it are settled.
    merges = [i for i, (key, _) in enumerate(entries) if is_merge(key)]
    above = merges[-1] if merges else 0
    _reconcile_entries(draft, node, new, path, names, [i for i in range(above) if keep[i]])
    provided = _provided(draft, node)
    if provided is not None and any(key not in new for key in provided):
        provided = None
    for i in merges:
        keep[i] = provided is not None
    written = {name for name, stays in zip(names, keep, strict=True) if stays}
    merged = provided or {}
    added = [key for key in new if key not in written and not (key in merged and same(merged[key], new[key]))]
    if not any(keep):
        return not entries and not added
    for i in merges:
        if keep[i]:
            settle(draft, entries[i][1])
    _reconcile_entries(draft, node, new, path, names, [i for i in range(above, len(entries)) if keep[i]])
    # Last, so that lines added below a value come before lines added behind it.
    _rearrange(draft, node, keep, _placed(new, added, names, keep))
    return True


def _reconcile_entries(
    draft: Draft, node: Node, new: dict[Any, Any], path: Path, names: list[Any], staying: list[int]
) -> None:
    """The entries of a mapping that stay, merges aside: their keys and values as they will be."""
    entries = node.entries
    for i in staying:
        key, value = entries[i]
        if is_merge(key):
            continue
        settle(draft, key)
        _rename(draft, node, key, names[i])
        if any(key is other for other in node.overridden):
            settle(draft, value)
        else:
            reconcile(draft, value, new[names[i]], _slot(draft, node, key), (*path, names[i]))


def _names(draft: Draft, node: Node, new: dict[Any, Any], path: Path) -> list[Any]:
    """What the keys of a mapping will be called."""
    names = [None if is_merge(key) else _name(key) for key, _ in node.entries]
    if not draft.origins:
        return names
    renamed = {draft.origins.get((*path, key)): key for key in new if key not in names}
    return [renamed[name] if name not in new and name is not None and name in renamed else name for name in names]


def _name(key: Node) -> Any:
    return "=" if not is_merge(key) and hasattr(key.value, "text") else key.value


def _rename(draft: Draft, node: Node, key: Node, name: Any) -> None:
    if same(_name(key), name):
        return
    quote = key.style if key.style == '"' and isinstance(name, str) else ""
    text = draft.json_text(name, None) if draft.is_json else scalar(name, flow=bool(node.style), quote=quote)
    draft.splices.replace(key.start, key.end, text)


def _provided(draft: Draft, node: Node) -> dict[Any, Any] | None:
    """What the merges of a mapping will bring in; None where one of them names what is no longer there."""
    result: dict[Any, Any] = {}
    for key, value in node.entries:
        if not is_merge(key):
            continue
        sources = value.children if value.kind == "sequence" else [value]
        for source in reversed(sources):
            held = draft.settled.get(id(source.resolved)) if source.kind == "alias" else source.value
            for mapping in reversed(cast("list[Any]", held)) if isinstance(held, list) else [held]:
                if not isinstance(mapping, dict):
                    return None
                result |= cast("dict[Any, Any]", mapping)
    return result


def _placed(new: dict[Any, Any], added: list[Any], names: list[Any], keep: list[bool]) -> Additions:
    """Behind which entry each new key goes: the nearest before it that stays; the last, if none follows."""
    index = {name: i for i, name in enumerate(names) if keep[i]}
    last = max(i for i, stays in enumerate(keep) if stays)
    wanted, place = set(added), last
    places: dict[Any, int] = {}
    waiting: list[Any] = []
    for key in new:
        if key in wanted:
            waiting.append(key)
            places[key] = place
        elif key in index:
            place, waiting = index[key], []
    places |= dict.fromkeys(waiting, last)
    result: dict[int, list[tuple[Any, Any]]] = {}
    for key in added:
        result.setdefault(places[key], []).append((key, new[key]))
    return result


def _edit_sequence(draft: Draft, node: Node, new: list[Any], path: Path) -> bool:
    old = [item.value for item in node.children]
    shorter = min(len(old), len(new))
    prefix = next((i for i in range(shorter) if not same(old[i], new[i])), shorter)
    rest = shorter - prefix
    suffix = next((i for i in range(rest) if not same(old[-1 - i], new[-1 - i])), rest)
    paired = shorter - suffix
    keep = [i < paired or i >= len(old) - suffix for i in range(len(old))]
    inserted = [(None, value) for value in new[paired : len(new) - suffix]] if len(new) > len(old) else []
    if not any(keep):
        return not old and not new
    shift = len(new) - len(old)
    for i, item in enumerate(node.children):
        if keep[i]:
            at = i if i < paired else i + shift
            reconcile(draft, item, new[at], _slot(draft, node, None), (*path, at))
    _rearrange(draft, node, keep, {paired - 1: inserted} if inserted else {})
    return True


def _rearrange(draft: Draft, node: Node, keep: list[bool], additions: Additions) -> None:
    if all(keep) and not additions:
        return
    if node.style == "{":
        from advisor.documents.flow import Flow

        Flow(draft, node, keep, additions).edit()
    else:
        Block(draft, node, keep, additions).edit()


def _slot(draft: Draft, node: Node, key: Node | None) -> Slot:
    if node.style == "{":
        return Slot("flow", key)
    if key is not None:
        return Slot("value", key, draft.column(node.children[0].start))
    return Slot("item")
