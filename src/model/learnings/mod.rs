//! AGENTS.md: what each iteration learnt, rendered, parsed, compacted.
