//! The truth on disk: a hash-chained, append-only journal, its blobs, lock, seal and anchor.
