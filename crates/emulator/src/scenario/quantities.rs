//! The quantities in a scenario's file: times, rates, qualities of links, shares.
//!
//! In: the text or number. Out: its value, or what was expected.

use std::time::Duration;

use super::LONGEST;
use crate::link::LinkQuality;

/// A time: `2s`, `100ms`, `1.5s`, `0s`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let number = |unit: &str| text.strip_suffix(unit)?.parse::<f64>().ok();
    let seconds =
        number("ms").map(|ms| ms / 1e3).or_else(|| number("s")).or_else(|| Some(number("min")? * 60.0));
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time =
        time.ok_or_else(|| format!("expected a time like \"2s\", \"100ms\" or \"5min\", found \"{text}\""))?;
    if time > LONGEST {
        return Err(format!("\"{text}\" is longer than the limit of {} hours", LONGEST.as_secs() / 3600));
    }
    Ok(time)
}

/// A rate: `10M`, `500k`, `1G`, in bits a second.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    // A comma would start another setting of a link.
    let quality = (!text.contains(',')).then(|| format!("rate={text}").parse::<LinkQuality>().ok()).flatten();
    let rate = quality.and_then(|quality| quality.rate_bits_per_s);
    rate.ok_or_else(|| format!("expected a rate like \"10M\" or \"500k\" in bits a second, found \"{text}\""))
}

/// The quality of a link, as `delay=1ms,rate=10M`.
pub(super) fn quality(text: &str) -> Result<LinkQuality, String> {
    text.parse().map_err(|error: crate::link::NotALinkQuality| error.to_string())
}

/// A share between 0 and 1 in per cent.
pub(super) fn percent(index: f64) -> Result<u8, String> {
    let is_one = (0.0..=1.0).contains(&index);
    // Between 0 and 100 after the check.
    is_one
        .then(|| (index * 100.0).round() as u8)
        .ok_or_else(|| format!("expected an index between 0 and 1, found {index}"))
}
