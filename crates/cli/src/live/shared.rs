//! Paths that scheduler and nodes must have in common: the shared folder, and the program of Slurm jobs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The program that nodes are to run, by its path from the root.
///
/// # Errors
/// If there is none at this path, or it cannot be executed: if this machine has none, nodes that share its folders have none.
pub(super) fn node_program(path: &Path) -> Result<PathBuf, Failure> {
    let refused = |why: &str| {
        let message = format!("--node-program {}: {why}", path.display());
        let help = "name a path by which this machine and all nodes have the program `apportion`, such as one in the folder \
                    of `--shared`";
        Failure::usage(message, Some(help.to_owned()))
    };
    let path_from_root = std::path::absolute(path).map_err(|error| refused(&error.to_string()))?;
    let data = fs::metadata(&path_from_root).map_err(|error| refused(&error.to_string()))?;
    if !data.is_file() {
        return Err(refused("this is no file"));
    }
    if data.permissions().mode() & 0o111 == 0 {
        return Err(refused("this file cannot be executed"));
    }
    Ok(path_from_root)
}

/// Refuses a shared folder that does not exist: a folder that was made here would not be seen by the nodes.
///
/// # Errors
/// If it does not exist, or is no folder.
pub(super) fn check_folder(shared: &Path) -> Result<(), Failure> {
    if shared.is_dir() {
        return Ok(());
    }
    let what = if shared.exists() { "this is no folder" } else { "there is no such folder" };
    let help =
        "nodes and scheduler must see one folder by this path: mount it, or make it there, and start again";
    Err(Failure::usage(format!("--shared {}: {what}", shared.display()), Some(help.to_owned())))
}

/// Warnings about the places of the folders.
pub(super) fn warnings(addresses: &BTreeSet<&str>, state: &Path, shared: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let kind = |path: &Path| std::path::absolute(path).ok().and_then(|path| file_system(&mounts, &path));
    if let Some(kind) = kind(state).filter(|kind| is_networked(kind)) {
        warnings.push(format!(
            "{} is on {kind}: the scheduler's records want a local disk; `--state` on one, and `--shared` here",
            state.display()
        ));
    }
    let is_here = |address: &&str| address.starts_with("127.") || *address == "localhost";
    if let Some(kind) = kind(shared).filter(|kind| !is_networked(kind))
        && !addresses.iter().all(is_here)
    {
        warnings.push(format!(
            "{} is on {kind}, which looks local: all nodes must see this folder by this path",
            shared.display()
        ));
    }
    warnings
}

/// The kind of the file system on which a path is, or would be.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        let place = place.replace("\\040", " ");
        path.starts_with(&place).then(|| (Path::new(&place).components().count(), kind.to_owned()))
    };
    mounts.lines().filter_map(mount).max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

fn is_networked(kind: &str) -> bool {
    let known =
        ["nfs", "lustre", "ceph", "gpfs", "beegfs", "cifs", "smb", "afs", "panfs", "wekafs", "fuse", "9p"];
    known.iter().any(|name| kind.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_known_by_the_deepest_mount() {
        let mounts = "/dev/a / ext4 rw 0 0\nhead:/shared /shared nfs4 rw 0 0\n/dev/b /shared/local\\040disk xfs rw 0 0\n";
        let of = |path: &str| file_system(mounts, Path::new(path)).unwrap();
        assert_eq!(
            (of("/tmp/x"), of("/shared/x"), of("/shared/local disk/x")),
            ("ext4".into(), "nfs4".into(), "xfs".into())
        );
        assert!(is_networked("nfs4") && !is_networked("ext4"));
    }
}
