//! Tables of nodes as clusters.

use apportion_logs::nodes::{NodeForm, Nodes, read_nodes};

use super::fixtures::fixture;

fn nodes(file: &str, form: NodeForm) -> Nodes {
    read_nodes(&fixture(file).display().to_string(), form).unwrap()
}

#[test]
fn slurm_prints_the_same_nodes_in_blocks_and_in_lines() {
    let (blocks, lines) = (
        nodes("nodes/scontrol_show_node.txt", NodeForm::Scontrol),
        nodes("nodes/scontrol_show_node_oneline.txt", NodeForm::Scontrol),
    );
    assert_eq!(blocks.types, lines.types);
    let cluster = blocks.cluster().unwrap();
    let expected = "a100=10,h100=8,nvidia_a100-sxm4-80gb=8,a100_1g.5gb=7,h200=4,a100_3g.20gb=2,v100=2,rtxproserver6000=1";
    assert_eq!(cluster.to_string(), expected);
    // Two servers of four, and one of two: most are of four.
    let a100 = cluster.find("a100").unwrap();
    assert_eq!(cluster.types()[a100].workers_per_server, 4);
    let counts = |nodes: &Nodes| {
        [&nodes.without_workers, &nodes.without_type, &nodes.away, &nodes.contradictory].map(|tally| tally.n)
    };
    assert_eq!(counts(&blocks), [2, 1, 4, 1]);
    assert_eq!(counts(&lines), counts(&blocks));
    let said: Vec<&str> = blocks.complaints.iter().map(|complaint| complaint.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "node `gpu12`: `gpu:a100:vier` is not understood, expected gpu:TYPE:NUMBER",
            "node `gpu15` has State `ERGOGRAY`, which is none of Slurm's"
        ]
    );
}

#[test]
fn tables_of_nodes_are_read_and_what_is_not_understood_is_said() {
    let spot = nodes("nodes/node_info_df.csv", NodeForm::SpotGpu);
    assert_eq!(spot.n_not_understood, 2, "{:?}", spot.complaints);
    let expected = "H800=16,A100-SXM4-80GB=8,A800-SXM4-80GB=8,GPU-series-2=8,GPU-series-1=5,A10=2";
    assert_eq!(spot.cluster().unwrap().to_string(), expected);
    let openb = nodes("nodes/openb_node_list_all_node.csv", NodeForm::Openb);
    assert_eq!(openb.n_not_understood, 2, "{:?}", openb.complaints);
    assert_eq!(openb.cluster().unwrap().to_string(), "G2=8,G3=8,V100M32=8,P100=2,T4=2,V100M16=1");
}
