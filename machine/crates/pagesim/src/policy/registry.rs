// SPDX-License-Identifier: Apache-2.0
//! Which policies there are, by name.

use super::interface::{Policy, Registration};
use super::python::{self, Python};
use crate::Error;
use crate::settings::Settings;

/// The policies that a configuration can choose from. Those of this crate are [`built_in`](super::built_in); a program may add
/// some of its own.
///
/// ```
/// use trapless_pagesim::core::Core;
/// use trapless_pagesim::pages::{Origin, PageId, Pid};
/// use trapless_pagesim::policy::{self, Policy, Registration};
///
/// /// Reads the next page with the missing one.
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
/// let mut known = policy::built_in();
/// known.add(Registration { name: "next", about: "reads one page ahead", make: |_| Box::new(Next) })?;
/// assert!(known.names().any(|name| name == "next") && known.names().any(|name| name == "foresight"));
/// # Ok::<(), trapless_pagesim::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry(Vec<Registration>);

impl Registry {
    /// The policies of some files, in this order.
    pub(super) fn of(files: &[&[Registration]]) -> Registry {
        Registry(files.concat())
    }

    /// Adds a policy.
    ///
    /// # Errors
    /// Another one has its name.
    pub fn add(&mut self, policy: Registration) -> Result<(), Error> {
        if self.names().any(|name| name == policy.name) {
            return Err(Error::Settings(format!("policy {}: there is one of this name", policy.name)));
        }
        self.0.push(policy);
        Ok(())
    }

    /// All policies.
    pub fn iter(&self) -> impl Iterator<Item = &Registration> {
        self.0.iter()
    }

    /// The names of all policies.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|policy| policy.name)
    }

    /// The policy of a configuration: one of these, or a file of Python (`python:FILE.py`).
    ///
    /// # Errors
    /// There is none of this name, or the file has no policy.
    pub fn make(&self, settings: &Settings) -> Result<Box<dyn Policy>, Error> {
        if let Some(file) = settings.policy.strip_prefix(python::PREFIX) {
            return Ok(Box::new(Python::start(file.as_ref(), settings)?));
        }
        match self.0.iter().find(|policy| policy.name == settings.policy) {
            Some(policy) => Ok((policy.make)(settings)),
            None => {
                let names = self.names().collect::<Vec<_>>().join(", ");
                Err(Error::Settings(format!("policy must be one of {names}, not {}", settings.policy)))
            }
        }
    }
}
