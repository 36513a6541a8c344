// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim`: the paging simulator with the policies of this project.

use std::process::ExitCode;

fn main() -> ExitCode {
    trapless_pagesim_cli::main_with(&[])
}
