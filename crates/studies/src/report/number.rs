//! Numbers as text for people.

/// Number with three or four significant digits and no trailing zeros: `0.25`, `13.2`, `1,234`, `2.1e9`.
pub fn brief(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{value:.1e}");
    }
    let n_decimals = match size {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        s if s >= 0.1 => 3,
        _ => 5,
    };
    let text = format!("{value:.n_decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    grouped(&text)
}

/// Number with thousands separated.
fn grouped(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut grouped = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// Number rounded to six significant digits, which is more than a chart can show, and halves the page.
pub(super) fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.000_51, "0.00051"),
            (1.0, "1"),
            (13.249, "13.2"),
            (-13.249, "-13.2"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (2.14e9, "2.1e9"),
            (1e-7, "1.0e-7"),
        ] {
            assert_eq!(brief(value), text);
        }
    }
}
