// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim`: records memory traces of programs and simulates paging and scheduling with them.
//!
//! Exit status: 0 if done, 2 for bad input, 130 after an interrupt. Errors are one line on standard error.
//!
//! The whole command line is a function, [`main_with`]. A program of another project can call it to add the policies of that
//! project (docs/how-to/add-a-policy-of-yours.md).

mod count;
#[allow(dead_code)] // Two programs share it; each uses only some functions.
#[path = "../files.rs"]
mod files;
mod import;
mod info;
mod mrc;
mod record;
mod run;
mod tracer;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use trapless_pagesim::policy::{self, Registration, Registry};

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
    /// Convert a trace of another tool: valgrind's lackey, DynamoRIO, ChampSim, libCacheSim, perf, DAMON, or CSV.
    Import(import::Import),
    /// Show what is in a trace: accesses, footprint, working set. Fails if the trace is incomplete.
    Info(info::Info),
    /// Run one simulation.
    Run(run::Run),
    /// Compute miss-ratio curves of a trace: how many requests miss in memories of many sizes.
    Mrc(mrc::Mrc),
}

/// Runs the program `trapless-pagesim`, with `more` policies in addition to those of this project. Reads the arguments of the
/// command line, prints, and returns the exit status.
///
/// ```no_run
/// use trapless_pagesim::core::Core;
/// use trapless_pagesim::pages::{Origin, PageId, Pid};
/// use trapless_pagesim::policy::{Policy, Registration};
///
/// /// Reads the page after the missing one as well.
/// struct Next;
///
/// impl Policy for Next {
///     fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
///         if let Some(next) = core.pages.mapped(pid, core.pages[page].vpn + 1) {
///             core.prefetch(next, Origin::Neighbour);
///         }
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     let next = Registration { name: "next", about: "reads one page ahead", make: |_| Box::new(Next) };
///     trapless_pagesim_cli::main_with(&[next])
/// }
/// ```
pub fn main_with(more: &[Registration]) -> ExitCode {
    let mut known = policy::built_in();
    let added = more.iter().try_for_each(|policy| known.add(*policy));
    if let Err(e) = added {
        eprintln!("trapless-pagesim: {e}");
        return ExitCode::from(BAD_INPUT);
    }
    let cli = match parse(&known) {
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
        Command::Run(options) => run::run(&options, &known).map(|()| 0),
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

/// Parses the command line. The help of `run` lists the policies.
fn parse(known: &Registry) -> Result<Cli, clap::Error> {
    let names = known.names().collect::<Vec<_>>().join(", ");
    let policies = format!("Policies: {names}, python:FILE.py");
    let mut command = Cli::command().mut_subcommand("run", |run| run.after_help(policies));
    Cli::from_arg_matches_mut(&mut command.try_get_matches_from_mut(std::env::args_os())?)
        .map_err(|e| e.format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
