//! What an agent may do: shell, files, search; processes, permissions, sandbox hooks.
