//! The driver: performs effects, feeds results back as inputs, keeps nothing the journal lacks.
