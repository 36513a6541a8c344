// SPDX-License-Identifier: Apache-2.0
//! Results that appear whole or not at all.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

/// The folder of a file.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Finds out before the run, not after it, that the result has nowhere to go.
pub fn check_writable(path: &Path) -> Result<()> {
    tempfile::NamedTempFile::new_in(folder(path)).map(drop).with_context(|| format!("cannot write {}", path.display()))
}

/// A file that may become the one at `path`.
pub fn temporary(path: &Path) -> Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder(path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a file whole or not at all.
pub fn write_whole(path: &Path, data: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = temporary(path)?;
    file.write_all(data).with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    Ok(())
}
