"""More than one loss kernel is enabled."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, is_list, only, without
from advisor.run.axolotl.edits import FUSED_LOSSES

KEYS = (*FUSED_LOSSES, "chunked_cross_entropy", "liger_cross_entropy")


def finds(run: Run) -> Iterator[Hit]:
    """Keys that exclude each other; or two plugins that both replace the model's forward."""
    on = [key for key in KEYS if run.config.get(key)]
    plugins = listed(run)
    implied = "CutCrossEntropyPlugin" in plugins and run.config.get("cut_cross_entropy", True) is not False
    if len(on) > 1:
        yield refused(on)
    elif implied and run.config.get("chunked_cross_entropy"):
        yield Hit(
            "chunked_cross_entropy",
            "`chunked_cross_entropy: true` is refused by axolotl with CutCrossEntropyPlugin; remove it",
            edits=(Remove("chunked_cross_entropy"),),
        )
    elif implied and "LigerPlugin" in plugins and run.config.get("liger_fused_linear_cross_entropy"):
        yield overridden(plugins)


def listed(run: Run) -> list[str]:
    """Class names of the plugins, in the order in which they patch the model."""
    given = run.config.get("plugins")
    return [str(name).rsplit(".", 1)[-1] for name in (given if is_list(given) else [given])]


def refused(on: list[str]) -> Hit:
    """Two keys, or more. A fused loss is worth more than one that still holds the logits."""
    fused = [key for key in on if key in FUSED_LOSSES]
    stale = [key for key in on if key not in FUSED_LOSSES]
    edits: tuple[Change, ...] = tuple(Remove(key) for key in stale) if len(fused) == 1 else ()
    remedy = f"keep `{fused[0]}`" if edits else "keep one"
    at = stale[0] if edits else on[-1]
    together = " and ".join(f"`{key}`" for key in on)
    return Hit(at, f"{together} exclude each other, and axolotl refuses the config; {remedy}", edits=edits)


def overridden(plugins: list[str]) -> Hit:
    """Both replace the same method; the plugin that is listed last wins."""
    cut_wins = plugins.index("CutCrossEntropyPlugin") > plugins.index("LigerPlugin")
    edit = Remove("liger_fused_linear_cross_entropy") if cut_wins else Set("cut_cross_entropy", False, after="plugins")
    winner, loser = ("CutCrossEntropyPlugin", "Liger's") if cut_wins else ("LigerPlugin", "cut cross-entropy's")
    return Hit(
        "liger_fused_linear_cross_entropy",
        "`liger_fused_linear_cross_entropy: true` with CutCrossEntropyPlugin, which is on when listed: both"
        f" replace the model's forward, and {winner}, listed last, wins; take {loser} out",
        edits=(edit,),
        level="warning",
    )


rule = Rule(
    id="two-fused-losses",
    stage="lint",
    title="More than one loss kernel is enabled",
    finds=finds,
    level="error",
    proof="rejects",
    safe=True,
    why="""
        Cut cross-entropy, Liger's two losses and the chunked one each replace how the loss is computed. axolotl refuses
        two of their keys together, but overlooks that cut cross-entropy is on wherever its plugin is listed.
    """,
    source="axolotl/utils/schemas/validation.py:1115-1143@0.19.0;"
    " axolotl/integrations/cut_cross_entropy/args.py:46-54@0.19.0; axolotl/integrations/base.py:530-537@0.19.0",
    examples=lambda: (
        Example(
            before="""
                base_model: meta-llama/Llama-3.1-8B
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
                chunked_cross_entropy: true
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                plugins:
                  - axolotl.integrations.liger.LigerPlugin
                liger_fused_linear_cross_entropy: true
            """,
        ),
        but(
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin\n"
            "  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
            "cut_cross_entropy: true",
            "bf16: true",
            fires=True,
            fixed=True,
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin\n"
            "  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin",
            "liger_rms_norm: true",
            "cut_cross_entropy: true",
            "bf16: true",
        ),
        but(fixed=True),
        but("plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin", fixed=True),
        but(
            "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n"
            "  - axolotl.integrations.liger.LigerPlugin",
            "cut_cross_entropy: false",
            fixed=True,
        ),
        without("plugins", "liger_fused_linear_cross_entropy"),
    ),
)
