//! Tests on files written as stable-baselines3 and PyTorch write theirs, whole and damaged.

use std::io::Write;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::actor::{Actor, Scratch};

/// An archive of uncompressed entries, as both programs write.
fn archive(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in entries {
        writer.start_file(name.as_str(), stored).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn text(pickle: &mut Vec<u8>, text: &str) {
    pickle.push(b'X');
    pickle.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    pickle.extend(text.as_bytes());
}

fn tuple(pickle: &mut Vec<u8>, numbers: &[usize]) {
    for number in numbers {
        pickle.push(b'M');
        pickle.extend(u16::try_from(*number).unwrap().to_le_bytes());
    }
    pickle.push([b')', 0x85, 0x86, 0x87][numbers.len()]);
}

/// An ordered dictionary of arrays in pickle protocol 2, as `torch.save` writes a module's state.
fn pickled(arrays: &[(&str, Vec<usize>, &str)]) -> Vec<u8> {
    let mut pickle = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(".to_vec();
    for (number, (name, shape, kind)) in arrays.iter().enumerate() {
        text(&mut pickle, name);
        pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        text(&mut pickle, "storage");
        pickle.extend(format!("ctorch\n{kind}\n").bytes());
        text(&mut pickle, &number.to_string());
        text(&mut pickle, "cpu");
        pickle.extend(b"K\x08tQK\x00");
        tuple(&mut pickle, shape);
        let stride = |axis: usize| shape[axis + 1..].iter().product();
        tuple(&mut pickle, &(0..shape.len()).map(stride).collect::<Vec<_>>());
        pickle.extend(b"\x89h\x00)RtR");
    }
    pickle.push(b'u');
    // The module's metadata, as attributes of the dictionary.
    pickle.push(b'}');
    text(&mut pickle, "_metadata");
    pickle.extend(b"h\x00)R");
    text(&mut pickle, "");
    pickle.push(b'}');
    text(&mut pickle, "version");
    pickle.extend(b"K\x01sssb.");
    pickle
}

/// Names, shapes and kinds of memory.
type Shapes = Vec<(&'static str, Vec<usize>, &'static str)>;

/// Arrays of a policy with 3 observed numbers, hidden layers of 4 and 2, and 5 actions.
fn shapes() -> Shapes {
    let float = "FloatStorage";
    vec![
        ("mlp_extractor.policy_net.0.weight", vec![4, 3], float),
        ("mlp_extractor.policy_net.0.bias", vec![4], float),
        ("mlp_extractor.policy_net.2.weight", vec![2, 4], float),
        ("mlp_extractor.policy_net.2.bias", vec![2], float),
        ("mlp_extractor.value_net.0.weight", vec![4, 3], float),
        ("mlp_extractor.value_net.0.bias", vec![4], float),
        ("mlp_extractor.value_net.2.weight", vec![2, 4], float),
        ("mlp_extractor.value_net.2.bias", vec![2], float),
        ("action_net.weight", vec![5, 2], float),
        ("action_net.bias", vec![5], float),
        ("value_net.weight", vec![1, 2], float),
        ("value_net.bias", vec![1], float),
    ]
}

/// The i-th number of the n-th array.
fn number(array: usize, place: usize) -> f32 {
    ((7 * array + 3 * place) % 11) as f32 / 10.0 - 0.5
}

fn saved(arrays: &[(&str, Vec<usize>, &str)]) -> Vec<u8> {
    let mut entries = vec![("archive/data.pkl".to_owned(), pickled(arrays))];
    for (array, (_, shape, _)) in arrays.iter().enumerate() {
        let numbers =
            (0..shape.iter().product()).flat_map(|place| number(array, place).to_le_bytes()).collect();
        entries.push((format!("archive/data/{array}"), numbers));
    }
    entries.push(("archive/version".to_owned(), b"3\n".to_vec()));
    entries.push(("archive/byteorder".to_owned(), b"little".to_vec()));
    archive(&[
        ("data".to_owned(), br#"{"num_timesteps": 409600, "_n_updates": 2000, "seed": null}"#.to_vec()),
        ("policy.pth".to_owned(), archive(&entries)),
        ("_stable_baselines3_version".to_owned(), b"1.7.0".to_vec()),
    ])
}

/// The actor's outputs, straight from the definition.
fn expected(seen: &[f32]) -> Vec<f32> {
    let dense = |array: usize, input: &[f32], outputs: usize| -> Vec<f32> {
        let row = |row: usize| {
            let products = input
                .iter()
                .enumerate()
                .map(|(column, value)| number(array, row * input.len() + column) * value);
            number(array + 1, row) + products.sum::<f32>()
        };
        (0..outputs).map(row).collect()
    };
    let tanh = |numbers: Vec<f32>| numbers.into_iter().map(f32::tanh).collect::<Vec<_>>();
    dense(8, &tanh(dense(2, &tanh(dense(0, seen, 4)), 2)), 5)
}

#[test]
fn an_imported_policy_decides_as_its_arrays_say() {
    let checkpoint = import(&saved(&shapes())).unwrap();
    assert_eq!((checkpoint.header.n_decisions, checkpoint.header.n_updates), (409_600, 2000));
    assert_eq!(checkpoint.header.spec["version"], "1.7.0");
    let seen = [0.5, -1.0, 2.0];
    let mut logits = [0.0; 5];
    checkpoint.actor().unwrap().logits(0, &seen, &mut Scratch::default(), &mut logits).unwrap();
    for (found, expected) in logits.iter().zip(expected(&seen)) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    let again = Checkpoint::from_bytes(&checkpoint.to_bytes().unwrap()).unwrap();
    assert_eq!(again, checkpoint);
}

#[test]
fn other_policies_are_refused_by_what_they_have() {
    let said = |change: &dyn Fn(&mut Shapes)| {
        let mut arrays = shapes();
        change(&mut arrays);
        import(&saved(&arrays)).unwrap_err().to_string()
    };
    let text = said(&|arrays| arrays.push(("log_std", vec![5], "FloatStorage")));
    assert!(text.ends_with("it has `log_std`, which dense layers do not have"), "{text}");
    let text = said(&|arrays| arrays[8].2 = "DoubleStorage");
    assert!(text.contains("array `action_net.weight`: it is of `torch.DoubleStorage`"), "{text}");
    let text = said(&|arrays| drop(arrays.remove(9)));
    assert!(text.contains("there is no tensor `action_net.bias`"), "{text}");
    let text = said(&|arrays| arrays[2].1 = vec![4, 2]);
    assert!(text.contains("expected 4 inputs"), "{text}");
}

#[test]
fn damaged_files_are_refused_and_never_panic() {
    let whole = saved(&shapes());
    assert!(import(b"").unwrap_err().to_string().contains("the file is no zip archive"));
    assert!(import(&archive(&[])).unwrap_err().to_string().contains("its entry `policy.pth`"));
    for end in (0..whole.len()).step_by(7) {
        assert!(import(&whole[..end]).is_err(), "cut at {end}");
    }
    let pickle = pickled(&shapes());
    for place in 0..pickle.len() {
        for change in [0x01, 0x28, 0x80, 0xff] {
            let mut damaged = pickle.clone();
            damaged[place] ^= change;
            // The result does not matter: the reader must not panic.
            let _ = pickle::read(&damaged);
        }
        assert!(pickle::read(&pickle[..place]).is_err(), "cut at {place}");
    }
}

#[test]
fn a_pickle_that_calls_anything_else_is_refused() {
    let error = pickle::read(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.").unwrap_err();
    assert_eq!(error, "its pickle calls `os.system`, which no arrays need");
}

#[test]
fn a_pickle_that_doubles_itself_is_refused() {
    let mut pickle = b"\x80\x02N".to_vec();
    for key in 0..60 {
        pickle.extend([b'q', key, b'h', key, 0x86]);
    }
    let error = pickle::read(&pickle).unwrap_err();
    assert_eq!(error, "its pickle copies more than any array needs");
}

#[test]
fn a_pickle_of_values_deep_in_one_another_is_refused() {
    let n = 200_000;
    let tuples = [b"N".to_vec(), vec![0x85; n]].concat();
    let lists = [vec![b']'; n], vec![b'a'; n - 1]].concat();
    let groups = [vec![b'('; n], vec![b't'; n]].concat();
    let dictionaries = [b"}".to_vec(), b"K\x00}".repeat(n), vec![b's'; n]].concat();
    for nested in [tuples, lists, groups, dictionaries] {
        let error = pickle::read(&[nested, b".".to_vec()].concat()).unwrap_err();
        assert_eq!(error, "its pickle nests values more than 32 deep");
    }
}

#[test]
fn arrays_that_would_be_too_large_together_are_refused() {
    let arrays = &shapes()[..2];
    let whole = saved(arrays);
    let policy = entry(&mut open(&whole, "the file").unwrap(), "policy.pth").unwrap();
    // The arrays have 12 and 4 numbers of 4 bytes.
    assert_eq!(super::arrays(&policy, 64).unwrap().n_numbers(), 16);
    let error = super::arrays(&policy, 63).unwrap_err().to_string();
    assert!(error.contains("array `mlp_extractor.policy_net.0.bias`: it and those before it"), "{error}");
}
