// SPDX-License-Identifier: Apache-2.0
//! The known policies, by name.

use super::interface::{Policy, Registration};
use super::python::{self, Python};
use crate::Error;
use crate::settings::Settings;

/// The policies that a configuration can choose from. [`built_in`](super::built_in) returns those of this crate. A program may
/// add others.
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
    /// Makes a registry from the policies of several files, in this order.
    pub(super) fn of(files: &[&[Registration]]) -> Registry {
        Registry(files.concat())
    }

    /// Adds a policy.
    ///
    /// # Errors
    /// Another policy has this name.
    pub fn add(&mut self, policy: Registration) -> Result<(), Error> {
        if self.names().any(|name| name == policy.name) {
            return Err(Error::Settings(format!("policy {}: another policy has this name", policy.name)));
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

    /// Makes the policy of a configuration: one of these, or one in a Python file (`python:FILE.py`).
    ///
    /// # Errors
    /// No policy has this name, or the file does not define a policy.
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
