//! Files rendered from the journal, and `verify`.
