//! Training documents that ship with the program.

use apportion::spec::lookup::Embedded;

/// The version of the documents.
pub const FORMAT: &str = "apportion/training-v1";

/// Every document in `training/`, by its name there.
pub const TRAININGS: [Embedded; 20] = [
    ("deepshare_a", include_str!("../../../training/deepshare_a.yaml")),
    ("deepshare_c", include_str!("../../../training/deepshare_c.yaml")),
    ("deepshare_cells", include_str!("../../../training/deepshare_cells.yaml")),
    ("deepshare_e", include_str!("../../../training/deepshare_e.yaml")),
    ("deepshare_hybrid", include_str!("../../../training/deepshare_hybrid.yaml")),
    ("dl2", include_str!("../../../training/dl2.yaml")),
    ("dl2_world", include_str!("../../../training/dl2_world.yaml")),
    ("dual_agent", include_str!("../../../training/dual_agent.yaml")),
    ("dual_agent_beside", include_str!("../../../training/dual_agent_beside.yaml")),
    ("dual_agent_joint", include_str!("../../../training/dual_agent_joint.yaml")),
    ("dual_agent_longer", include_str!("../../../training/dual_agent_longer.yaml")),
    ("dual_agent_order", include_str!("../../../training/dual_agent_order.yaml")),
    ("dual_agent_rounds", include_str!("../../../training/dual_agent_rounds.yaml")),
    ("dual_agent_server", include_str!("../../../training/dual_agent_server.yaml")),
    ("dual_agent_switching", include_str!("../../../training/dual_agent_switching.yaml")),
    ("elastic", include_str!("../../../training/elastic.yaml")),
    ("elastic_dl2", include_str!("../../../training/elastic_dl2.yaml")),
    ("learned_pairs", include_str!("../../../training/learned_pairs.yaml")),
    ("learned_values", include_str!("../../../training/learned_values.yaml")),
    ("learned_values_packed", include_str!("../../../training/learned_values_packed.yaml")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_in_the_folder_ships_as_it_is() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../training");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let documents = paths.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        let mut found: Vec<(String, String)> = documents
            .map(|path| {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read_to_string(path).unwrap())
            })
            .collect();
        found.sort();
        let shipped = TRAININGS.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(found, shipped);
    }
}
