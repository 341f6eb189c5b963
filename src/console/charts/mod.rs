//! Charts: exact values placed on a grid. Floats only place a dot; every number shown is exact text.
