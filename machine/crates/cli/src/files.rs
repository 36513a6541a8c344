// SPDX-License-Identifier: Apache-2.0
//! Output files that appear completely or not at all.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

/// The folder that contains a file.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Fails if a file cannot be written at `path`, so that this is noticed before the run, not after it.
pub fn check_writable(path: &Path) -> Result<()> {
    tempfile::NamedTempFile::new_in(folder(path)).map(drop).with_context(|| format!("cannot write {}", path.display()))
}

/// Creates a temporary file that can later replace the one at `path`.
pub fn temporary(path: &Path) -> Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder(path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a file completely or not at all.
pub fn write_whole(path: &Path, data: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = temporary(path)?;
    file.write_all(data).with_context(cannot)?;
    file.persist(path).with_context(cannot)?;
    Ok(())
}
