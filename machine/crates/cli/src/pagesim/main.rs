// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim`: records memory traces of programs and simulates paging and scheduling with them.
//!
//! Exit status: 0 if done, 2 for bad input, 130 after an interrupt. Errors are one line on standard error.

mod count;
#[allow(dead_code)] // Two programs share it, and each uses some.
#[path = "../files.rs"]
mod files;
mod import;
mod info;
mod mrc;
mod record;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const BAD_INPUT: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Simulates paging and scheduling of several programs from traces of their memory accesses.
#[derive(Parser, Debug)]
#[command(name = "trapless-pagesim", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
enum Command {
    /// Run a program under valgrind and store a trace of its memory accesses.
    Record(record::Record),
    /// Store what valgrind's tool lackey has printed as a trace.
    Import(import::Import),
    /// Show what is in a trace: accesses, footprint, working set. Fails if the trace is incomplete.
    Info(info::Info),
    /// Run one simulation.
    Run(run::Run),
    /// Miss-ratio curves of a trace: how many requests miss in memories of many sizes.
    Mrc(mrc::Mrc),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // clap prints help and version to standard output with status 0, and mistakes to standard error with status 2.
            let _ = e.print();
            return ExitCode::from(e.exit_code() as u8);
        }
    };
    let result = match cli.command {
        Command::Record(options) => record::record(&options),
        Command::Import(options) => import::import(&options).map(|()| 0),
        Command::Info(options) => info::info(&options).map(|()| 0),
        Command::Run(options) => run::run(&options).map(|()| 0),
        Command::Mrc(options) => mrc::mrc(&options).map(|()| 0),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(e) => {
            eprintln!("trapless-pagesim: {e:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
