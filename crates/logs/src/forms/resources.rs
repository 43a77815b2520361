//! Kubernetes' names of resources: names of accelerators, names of other things, and names that may be accelerators.

/// Kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// It counts accelerators, or slices of them that are one each.
    Workers,
    /// It is about accelerators, but in units that cannot be converted to whole ones: memory, cores, shares of them.
    Unclear,
    /// It is known not to be an accelerator.
    Known,
    /// It is not known.
    Unknown,
}

/// Suffix of names of whole accelerators.
pub(super) const WHOLE: &str = "gpu";

/// Other names of resources that are accelerators.
const OTHERS: [&str; 7] = [
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "huawei.com/Ascend910",
];

/// Koordinator's name of hundredths of accelerators.
const IN_PERCENT: &str = "koordinator.sh/gpu";

/// Parts of names that only accelerators have.
const SIGNS: [&str; 9] =
    ["gpu", "cuda", "neuron", "gaudi", "ascend", "i915", "accelerator", "nvidia.com/mig", "gpu.intel.com"];

/// Words of names that only accelerators have, alone or followed by a number.
const WORDS: [&str; 6] = ["npu", "tpu", "xpu", "mlu", "dcu", "mig"];

/// Names of resources that are no accelerators.
const NONE: [&str; 6] = ["cpu", "memory", "ephemeral-storage", "storage", "pods", "nvidia.com/hostdev"];

/// Prefixes of names of resources that are no accelerators.
const NONE_FROM: [&str; 8] = [
    "hugepages-",
    "requests.",
    "attachable-volumes-",
    "rdma/",
    "mellanox.com/",
    "vpc.amazonaws.com/",
    "devices.kubevirt.io/",
    "networking.gke.io",
];

/// Kind of a resource: `nvidia.com/gpu`, `amd.com/gpu` and slices such as `nvidia.com/mig-1g.5gb` count accelerators.
pub(super) fn counts(resource: &str) -> Counts {
    if NONE.contains(&resource) || NONE_FROM.iter().any(|start| resource.starts_with(start)) {
        return Counts::Known;
    }
    let is_shared = resource.ends_with(".shared") || resource == IN_PERCENT;
    let end = resource.rsplit_once('/').map(|(_, end)| end);
    if !is_shared
        && (OTHERS.contains(&resource) || end.is_some_and(|end| end == WHOLE || end.starts_with("mig-")))
    {
        return Counts::Workers;
    }
    let small = resource.to_lowercase();
    let mut words = small.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_sign = |word: &str, sign: &str| {
        word.strip_prefix(sign)
            .is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
    };
    let has_word = words.any(|word| WORDS.iter().any(|sign| is_sign(word, sign)));
    if has_word || SIGNS.iter().any(|sign| small.contains(sign)) { Counts::Unclear } else { Counts::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_known_by_their_names() {
        for (expected, names) in [
            (
                Counts::Workers,
                &["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb", "google.com/tpu"][..],
            ),
            (
                Counts::Unclear,
                &[
                    "nvidia.com/gpu.shared",
                    "nvidia.com/mig-1g.5gb.shared",
                    "aliyun.com/gpu-mem",
                    "nvidia.com/gpumem",
                    "nvidia.com/gpucores",
                    "aws.amazon.com/neuroncore",
                    "tencent.com/vcuda-core",
                    "whole-gpus",
                    "huawei.com/npu-core",
                    "cambricon.com/mlu370",
                    "gpu.intel.com/memory.max",
                    "koordinator.sh/gpu",
                ],
            ),
            (Counts::Known, &["cpu", "memory", "hugepages-2Mi", "rdma/hca", "vpc.amazonaws.com/efa"]),
            (
                Counts::Unknown,
                &["example.com/license", "example.com/output", "input", "example.com/migration-slots"],
            ),
        ] {
            for name in names {
                assert_eq!(counts(name), expected, "{name}");
            }
        }
    }
}
