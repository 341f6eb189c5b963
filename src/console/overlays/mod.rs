//! What lies over the panes: inbox, questions, help, palette. One stack; the top one has the keys.
