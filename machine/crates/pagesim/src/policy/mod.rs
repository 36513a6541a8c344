// SPDX-License-Identifier: Apache-2.0
//! Policies for page faults. Each policy has one file, and one line here.

mod interface;
mod python;
mod registry;

pub use aspf::settings::Aspf;
pub use interface::{Bookkeeping, Policy, Registration, Wait};
pub use optimum::NAME as OPTIMUM;
pub use python::PREFIX as PYTHON;
pub use registry::Registry;

/// Declares the files of policies. Each file has its policies in `POLICIES`.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// The policies of this crate, in the order in which lists show them.
        pub fn built_in() -> Registry {
            Registry::of(&[$($file::POLICIES),*])
        }
    };
}

policies! {
    plain,
    virt,
    agg,
    aspf,
    readahead,
    leap,
    optimum,
    adaptive,
    foresight,
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::core::Core;
    use crate::settings::Settings;

    /// A system with this number of `frames`, and one process for each `mapped` range of pages (first, count).
    pub(crate) fn core(frames: u32, mapped: &[(u64, u64)]) -> Core {
        let process = |n| format!("[[process]]\nname = \"P{n}\"\ntrace = \"\"\n");
        let processes: String = (0..mapped.len()).map(process).collect();
        let text = format!("policy = \"sync\"\n[memory]\nframes = {frames}\nreserve = 0\n{processes}");
        let settings: Settings = toml::from_str(&text).unwrap();
        let mapped: Vec<_> = mapped.iter().map(|range| vec![*range]).collect();
        Core::new(&settings, &mapped, "lru").unwrap()
    }
}
