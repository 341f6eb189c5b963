//! (certificate)
