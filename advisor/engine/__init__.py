"""Run, Estimate -> Findings, each with its Edits: rules, checks, the plan, fixes, suppressions."""
