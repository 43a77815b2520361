//! Weights that ship with the program.

use std::path::Path;

use apportion::spec::SpecError;
use apportion::spec::lookup::read_bytes;
use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::path_text;

/// Weights that ship with the program, by name: `training/NAME.safetensors`, made by the document beside it.
pub const WEIGHTS: [(&str, &[u8]); 15] = [
    ("deepshare_cells", include_bytes!("../../../training/deepshare_cells.safetensors")),
    ("deepshare_e", include_bytes!("../../../training/deepshare_e.safetensors")),
    ("deepshare_hybrid", include_bytes!("../../../training/deepshare_hybrid.safetensors")),
    ("dl2", include_bytes!("../../../training/dl2.safetensors")),
    ("dl2_world", include_bytes!("../../../training/dl2_world.safetensors")),
    ("dual_agent_joint", include_bytes!("../../../training/dual_agent_joint.safetensors")),
    ("dual_agent_longer", include_bytes!("../../../training/dual_agent_longer.safetensors")),
    ("dual_agent_order", include_bytes!("../../../training/dual_agent_order.safetensors")),
    ("dual_agent_rounds", include_bytes!("../../../training/dual_agent_rounds.safetensors")),
    ("dual_agent_server", include_bytes!("../../../training/dual_agent_server.safetensors")),
    ("dual_agent_switching", include_bytes!("../../../training/dual_agent_switching.safetensors")),
    ("elastic", include_bytes!("../../../training/elastic.safetensors")),
    ("learned_pairs", include_bytes!("../../../training/learned_pairs.safetensors")),
    ("learned_values", include_bytes!("../../../training/learned_values.safetensors")),
    ("learned_values_packed", include_bytes!("../../../training/learned_values_packed.safetensors")),
];

/// The bytes of the embedded weights of a name, or of the file at a path. A text with a path separator, or that ends in
/// `.safetensors` or `.onnx`, is a path; any other is a name, or else a path.
///
/// # Errors
/// If there is neither such a name nor such a file; the error lists the names.
pub fn load_weights(name_or_path: &str) -> Result<Vec<u8>, SpecError> {
    load_weights_from(Path::new(""), name_or_path)
}

/// The bytes of the embedded weights of a name, or of the file at a path. A relative path starts in `folder`, the folder of the
/// document that states it. Where that has no file `NAME.safetensors`, it is the weights that ship as NAME: documents that ship have
/// such files beside them, and copies of them do not.
///
/// # Errors
/// If there is neither such a name nor such a file; the error lists the names.
pub fn load_weights_from(folder: &Path, name_or_path: &str) -> Result<Vec<u8>, SpecError> {
    if let Some(bytes) = shipped(name_or_path) {
        return Ok(bytes.to_vec());
    }
    let path = folder.join(path_text::to_path(name_or_path));
    let beside = name_or_path.strip_suffix(".safetensors").and_then(shipped);
    if let Some(bytes) = beside.filter(|_| path.symlink_metadata().is_err()) {
        return Ok(bytes.to_vec());
    }
    // A file that exists without weights in it gets an error about its contents, not about an unknown name.
    if is_path(name_or_path) || path.exists() {
        return read_bytes(path);
    }
    let names = || WEIGHTS.iter().map(|(name, _)| *name);
    let message =
        format!("unknown weights `{name_or_path}`, expected a file or one of {}", name_list(names()));
    Err(SpecError::about("", message, suggestion(name_or_path, names())))
}

/// The bytes of the weights that ship under this name.
fn shipped(name: &str) -> Option<&'static [u8]> {
    WEIGHTS.iter().find(|(other, _)| *other == name).map(|(_, bytes)| *bytes)
}

/// Whether weights of this name ship with the program.
pub fn ships(name: &str) -> bool {
    shipped(name).is_some()
}

pub(crate) fn is_path(name_or_path: &str) -> bool {
    let is_file = [".safetensors", ".onnx"].iter().any(|ending| name_or_path.ends_with(ending));
    is_file || name_or_path.contains(std::path::is_separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_ship_are_found_by_the_name_of_their_file_unless_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let load = |name: &str| load_weights_from(folder.path(), name);
        let shipped = load("dual_agent_longer").unwrap();
        assert_eq!(load("dual_agent_longer.safetensors").unwrap(), shipped);
        assert!(load("other/dual_agent_longer.safetensors").is_err());
        assert!(load("dual_agent_longe.safetensors").is_err());
        std::fs::write(folder.path().join("dual_agent_longer.safetensors"), "its own").unwrap();
        assert_eq!(load("dual_agent_longer.safetensors").unwrap(), b"its own");
    }
}
