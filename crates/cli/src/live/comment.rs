//! The comment of a Slurm job with the values that `apportion submit` takes as flags: `apportion: job-type="…" steps=10000`.

use std::collections::BTreeMap;

use super::submit::speeds;
use crate::conditions::time;
use apportion::spec::nearest::{name_list, suggestion};
use apportion_live::front::JobForm;

/// The names that a comment may contain.
const NAMES: [&str; 6] = ["job-type", "owner", "slo", "steps", "throughput", "weight"];

/// Reads the text after `apportion:`. The scale factor comes from Slurm.
///
/// # Errors
/// The fault, and the form that is expected, in words.
pub(super) fn read(text: &str) -> Result<JobForm, String> {
    let mut said: BTreeMap<&str, String> = BTreeMap::new();
    for (name, value) in words(text)? {
        let Some(known) = NAMES.iter().find(|known| **known == name) else {
            let nearest = suggestion(&name, NAMES.iter().copied());
            let nearest = nearest.map_or_else(String::new, |nearest| format!(" ({nearest})"));
            return Err(format!(
                "its comment has `{name}=`, expected {}{nearest}",
                name_list(NAMES.iter().copied())
            ));
        };
        if said.insert(*known, value).is_some() {
            return Err(format!("its comment has `{name}=` twice"));
        }
    }
    let steps = said.get("steps").ok_or("its comment lacks `steps=N`, the steps to its end")?;
    let steps: u64 = steps.parse().map_err(|_| wrong("steps", steps, "a whole number"))?;
    let weight = said
        .get("weight")
        .map_or(Ok(1.0), |weight| weight.parse::<f64>().map_err(|_| wrong("weight", weight, "a number")))?;
    let slo =
        said.get("slo").map(|slo| time(slo).map_err(|why| format!("its comment has `slo={slo}`: {why}")));
    let throughput = said
        .get("throughput")
        .map(|text| speeds(text).map_err(|why| format!("its comment has `throughput={text}`: {why}")));
    let throughput = throughput.transpose()?;
    let job_type = match (said.remove("job-type"), &throughput) {
        (Some(job_type), _) => job_type,
        (None, Some(_)) => "of its own".to_owned(),
        (None, None) => {
            return Err(
                "its comment lacks `job-type=\"NAME\"`, a type of the throughput table, or `throughput=TYPE=X,…`, its \
                 speeds in steps/s"
                    .to_owned(),
            );
        }
    };
    Ok(JobForm {
        job_type,
        scale_factor: 1,
        sizes: Vec::new(),
        total_steps: steps as f64,
        weight,
        slo: slo.transpose()?.map(apportion::units::Seconds::get),
        owner: said.remove("owner"),
        throughput,
    })
}

fn wrong(name: &str, value: &str, expected: &str) -> String {
    format!("its comment has `{name}={value}`, expected {expected}")
}

/// The words `NAME=VALUE` between blanks; a value, or a part of it, may stand in quotes.
fn words(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut words = Vec::new();
    let mut letters = text.chars().peekable();
    while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
    while letters.peek().is_some() {
        let (mut word, mut quote) = (String::new(), None);
        while let Some(letter) = letters.next_if(|letter| quote.is_some() || !letter.is_whitespace()) {
            match quote {
                Some(end) if letter == end => quote = None,
                None if letter == '"' || letter == '\'' => quote = Some(letter),
                _ => word.push(letter),
            }
        }
        if let Some(quote) = quote {
            return Err(format!("its comment has a {quote} that is not closed"));
        }
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                words.push((name.to_owned(), value.to_owned()));
            }
            _ => return Err(format!("its comment has `{word}`, expected NAME=VALUE")),
        }
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_says_what_submit_takes() {
        let form = read("job-type=\"ResNet-18 (batch size 64)\" steps=10000 weight=2 slo=2h owner='team a'")
            .unwrap();
        assert_eq!((form.job_type.as_str(), form.total_steps), ("ResNet-18 (batch size 64)", 10_000.0));
        assert_eq!((form.weight, form.slo, form.owner.as_deref()), (2.0, Some(7200.0), Some("team a")));
        let own = read(" throughput=v100=3.2,k80=1  steps=5 ").unwrap();
        assert_eq!(own.throughput.unwrap(), speeds("k80=1,v100=3.2").unwrap());
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, says) in [
            ("", "lacks `steps=N`"),
            ("steps=5", "lacks `job-type="),
            ("steps=5.5 job-type=a", "`steps=5.5`, expected a whole number"),
            ("steps=5 step=6", "`step=`, expected"),
            ("steps=5 steps=6 job-type=a", "twice"),
            ("steps=5 job-type=\"a", "not closed"),
            ("steps=5 hello", "`hello`, expected NAME=VALUE"),
            ("steps=5 job-type=", "`job-type=`, expected NAME=VALUE"),
            ("steps=5 throughput=fast", "`fast` is no speed"),
            ("steps=5 job-type=a weight=much", "`weight=much`"),
            ("steps=5 job-type=a slo=soon", "`slo=soon`"),
            ("steps=5 job-type=a sizes=1,2", "`sizes=`, expected"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
