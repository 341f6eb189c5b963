//! How a model is called: wire formats, streaming, retries, and the rehearsal server.
