//! Tables of nodes as clusters.

use std::io::Cursor;

use apportion_logs::nodes::{NodeForm, Nodes, read_nodes, read_nodes_from};

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
            "node `gpu12` has Gres `gpu:a100:vier`, expected gpu:TYPE:NUMBER",
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

#[test]
fn types_that_name_none_and_types_that_a_cluster_cannot_have_are_said_with_their_line() {
    for kind in ["", "None", "NaN", "nan", "null", "N/A"] {
        for (text, form) in [
            (format!("node_name,gpu_model,gpu_capacity_num\na,T4,1\nb,{kind},8\n"), NodeForm::SpotGpu),
            (
                format!(
                    "NodeName=a State=IDLE Gres=gpu:T4:1\nNodeName=b State=IDLE Gres=gpu:T4:2,gpu:{kind}:8\n"
                ),
                NodeForm::Scontrol,
            ),
        ] {
            let nodes = read_nodes_from("nodes", Cursor::new(text), form).unwrap();
            assert_eq!((nodes.without_type.n, nodes.n_not_understood), (1, 0), "{kind}");
            assert_eq!(nodes.cluster().unwrap().to_string(), "T4=1");
        }
    }
    let long = "x".repeat(1_000_000);
    for (text, line, expected) in [
        (
            "NodeName=a State=IDLE Gres=gpu:t=4:1",
            1,
            "node `a`: worker type `t=4`, expected at most 200 characters",
        ),
        ("NodeName=a State=IDLE Gres=(null)\nNodeName=b\n   State=IDLE", 2, "node `b` has no Gres"),
        ("NodeName=a State=IDLE Gres=gpu:T4:1000000000000000", 1, "Gres `gpu:T4:1000000000000000`, expected"),
        ("NodeName=a State=IDLE Gres=gpu:T4:4294967295,gpu:T4:1", 1, "more than 4294967295 accelerators"),
        (&format!("NodeName=a State=IDLE Gres=gpu:{long}:1"), 1, "…`, expected at most 200 characters"),
        (&format!("NodeName={long} State=IDLE Gres=gpu:x:y:z:1"), 1, "…` has Gres"),
        (&format!("NodeName=a State={long} Gres=gpu:T4:1"), 1, "…`, which is none of Slurm's"),
    ] {
        let nodes = read_nodes_from("nodes", Cursor::new(text.to_owned()), NodeForm::Scontrol).unwrap();
        let [only] = &nodes.complaints[..] else { panic!("{:?}", nodes.complaints) };
        assert!(only.message.contains(expected) && only.message.len() < 300, "{}", only.message);
        assert_eq!(only.line, line);
    }
    let text = "node_name,gpu_model,gpu_capacity_num\na,\"T4,T5\",1\nb,T4=,8\n";
    let nodes = read_nodes_from("nodes", Cursor::new(text), NodeForm::SpotGpu).unwrap();
    assert_eq!(nodes.complaints.iter().map(|complaint| complaint.line).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn nodes_that_are_ranges_and_accelerators_in_other_words_are_not_taken_for_others() {
    let text = "NodeName=n1 Gres=GPU:a100:4 State=IDLE\nNodeName=n[2-4,7] Gres=gpu:a100:4 State=IDLE\n\
                NodeName=n8 Gres=gres/gpu=8 State=IDLE\nNodeName=n9 Gres=shard:16 State=IDLE\n\
                NodeName=n10 Gres=mps:400,gpu:a100:2 State=IDLE\nNodeName=n11 Gres=nvme:2 State=IDLE\n";
    let nodes = read_nodes_from("nodes", Cursor::new(text), NodeForm::Scontrol).unwrap();
    assert_eq!((nodes.cluster().unwrap().to_string().as_str(), nodes.without_workers.n), ("a100=6", 1));
    let said: Vec<&str> = nodes.complaints.iter().map(|complaint| complaint.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "node `n[2-4,7]` is a range of nodes, expected one node: `scontrol show node` prints each",
            "node `n8` has Gres `gres/gpu=8`, expected gpu:TYPE:NUMBER",
            "node `n9` has Gres `shard:16`, which is parts of accelerators, and no accelerators",
        ]
    );
}
