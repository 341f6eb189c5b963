//! Entry point: hands the command line to [`nightloop::cli`] and exits with its code.

fn main() -> std::process::ExitCode {
    nightloop::cli::main()
}
