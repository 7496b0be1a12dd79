//! The quality of a link: delay, rate, queue length and loss; and its text form.
//!
//! In: text in the form of Mininet's `TCLink`, `delay=5ms,rate=10M,queue=100k,loss=1%`. Out: a [`LinkQuality`], or
//! what is wrong with the text. It never carries a frame: the network does.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The queue of a link without a given one: a hundred frames of full length, about what 1 Gbit/s switches have for a
/// port.
pub const QUEUE_DEFAULT_BYTES: usize = 150_000;
/// The longest queue of a link in each direction. Without a bound, a network of many slow links could fill the
/// memory.
pub const QUEUE_MAX_BYTES: usize = 64 * 1024 * 1024;
/// The longest delay. A longer one is a typing error.
pub const DELAY_MAX: Duration = Duration::from_secs(3600);
/// A loss of all frames: a million of a million.
pub const LOSS_ALL_PPM: u32 = 1_000_000;

/// How a link treats frames. Both directions have the same quality, but each has its own queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkQuality {
    /// The time from when the last bit leaves to when it arrives.
    pub delay: Duration,
    /// How many bits a second leave, counted over Ethernet frames without preamble and check sequence. `None`:
    /// without limit.
    pub rate_bits_per_s: Option<u64>,
    /// How many bytes may wait for the link, including the frame that is leaving. A frame beyond that is dropped
    /// (drop-tail). A link with an empty queue takes one frame of any length.
    pub queue_bytes: usize,
    /// How many of a million frames are lost, at random.
    pub loss_ppm: u32,
}

impl Default for LinkQuality {
    /// A link without delay, rate limit and loss.
    fn default() -> Self {
        LinkQuality {
            delay: Duration::ZERO,
            rate_bits_per_s: None,
            queue_bytes: QUEUE_DEFAULT_BYTES,
            loss_ppm: 0,
        }
    }
}

impl LinkQuality {
    /// Whether every frame arrives at once.
    pub fn is_ideal(&self) -> bool {
        self.delay.is_zero() && self.rate_bits_per_s.is_none() && self.loss_ppm == 0
    }

    /// How long a frame of this length occupies the link.
    pub fn serialisation(&self, frame_bytes: usize) -> Duration {
        let Some(rate) = self.rate_bits_per_s else { return Duration::ZERO };
        let nanoseconds = (frame_bytes as u128 * 8 * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

/// The error for a text that is not a link quality. The operator must correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotALinkQuality {
    word: String,
    why: String,
}

impl fmt::Display for NotALinkQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no quality of a link: {}; write words like delay=5ms,rate=10M,queue=100k,loss=1%",
            self.word, self.why
        )
    }
}

impl std::error::Error for NotALinkQuality {}

/// Settings between commas, each at most once.
///
/// * `delay=` in `ns`, `us`, `ms` or `s`
/// * `rate=` in bits a second, with `k`, `M` or `G` after it, or Mininet's `bw=` in Mbit/s
/// * `queue=` in bytes, with `k` or `M` after it
/// * `loss=` in per cent
///
/// `ideal` is a link without any limit.
impl FromStr for LinkQuality {
    type Err = NotALinkQuality;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut quality = LinkQuality::default();
        if text == "ideal" {
            return Ok(quality);
        }
        let mut seen = Vec::new();
        for word in text.split(',') {
            let refused = |why: String| NotALinkQuality { word: word.to_owned(), why };
            let (name, value) =
                word.split_once('=').ok_or_else(|| refused("it has no '=' in it".to_owned()))?;
            let kind = quality.take(name, value).map_err(refused)?;
            if seen.contains(&kind) {
                return Err(refused(format!("the {kind} is given twice")));
            }
            seen.push(kind);
        }
        Ok(quality)
    }
}

impl LinkQuality {
    /// Parses one setting, and returns which one it was.
    fn take(&mut self, name: &str, value: &str) -> Result<&'static str, String> {
        match name {
            "delay" => {
                let nanoseconds = parse(value, &DELAY_UNITS)?;
                self.delay = Duration::from_nanos(nanoseconds);
                if self.delay > DELAY_MAX {
                    return Err(format!("{} s are the longest delay", DELAY_MAX.as_secs()));
                }
                Ok("delay")
            }
            "rate" => self.take_rate(parse(value, &RATE_UNITS)?),
            "bw" => self.take_rate(parse(value, &[("", 1_000_000)])?),
            "queue" => {
                let bytes = usize::try_from(parse(value, &BYTE_UNITS)?).unwrap_or(usize::MAX);
                if bytes > QUEUE_MAX_BYTES {
                    return Err(format!("{QUEUE_MAX_BYTES} bytes are the longest queue"));
                }
                self.queue_bytes = bytes;
                Ok("queue")
            }
            "loss" => {
                let ppm = parse(value, &LOSS_UNITS)?;
                self.loss_ppm = u32::try_from(ppm)
                    .ok()
                    .filter(|ppm| *ppm <= LOSS_ALL_PPM)
                    .ok_or("more than 100 per cent cannot be lost")?;
                Ok("loss")
            }
            _ => Err(format!("'{name}' is none of delay, rate, bw, queue and loss")),
        }
    }

    fn take_rate(&mut self, rate: u64) -> Result<&'static str, String> {
        if rate == 0 {
            return Err("a link of rate 0 would hold everything back for ever; take it down instead".into());
        }
        self.rate_bits_per_s = Some(rate);
        Ok("rate")
    }
}

/// The units of a value, as powers of ten. The longer names come first.
const DELAY_UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const RATE_UNITS: [(&str, u64); 4] = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("", 1)];
const BYTE_UNITS: [(&str, u64); 3] = [("k", 1_000), ("M", 1_000_000), ("", 1)];
/// One per cent is ten thousand of a million. Mininet omits the sign.
const LOSS_UNITS: [(&str, u64); 2] = [("%", 10_000), ("", 10_000)];

/// A number with a unit, converted to the smallest unit.
fn parse(value: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let unit = units.iter().find_map(|(unit, scale)| Some((value.strip_suffix(unit)?, *scale)));
    let Some((number, scale)) = unit else {
        let names: Vec<&str> = units.iter().map(|(unit, _)| *unit).collect();
        return Err(format!("'{value}' has none of the units {}", names.join(", ")));
    };
    scaled(number, scale)
}

/// A decimal number times a power of ten, without rounding.
fn scaled(number: &str, scale: u64) -> Result<u64, String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
        return Err(format!("'{number}' is not a number"));
    }
    let too_large = || format!("'{number}' is too large");
    let mut value =
        whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(scale)).ok_or_else(too_large)?;
    let mut place = scale;
    for digit in fraction.bytes().map(|byte| u64::from(byte - b'0')) {
        if !place.is_multiple_of(10) && digit != 0 {
            return Err(format!("'{number}' is smaller than the unit"));
        }
        place /= 10;
        value = value.checked_add(digit * place).ok_or_else(too_large)?;
    }
    Ok(value)
}

/// The text form, which parses to the same quality. Settings of an ideal link are omitted.
impl fmt::Display for LinkQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ideal = LinkQuality::default();
        let mut words = Vec::new();
        if self.delay != ideal.delay {
            let nanoseconds = u64::try_from(self.delay.as_nanos()).unwrap_or(u64::MAX);
            words.push(format!("delay={}", print(nanoseconds, &DELAY_UNITS)));
        }
        if let Some(rate) = self.rate_bits_per_s {
            words.push(format!("rate={}", print(rate, &RATE_UNITS)));
        }
        if self.queue_bytes != ideal.queue_bytes {
            words.push(format!("queue={}", print(self.queue_bytes as u64, &BYTE_UNITS)));
        }
        if self.loss_ppm != 0 {
            let (whole, fraction) = (self.loss_ppm / 10_000, self.loss_ppm % 10_000);
            let decimals = format!(".{fraction:04}");
            words.push(format!("loss={whole}{}%", decimals.trim_end_matches('0').trim_end_matches('.')));
        }
        if words.is_empty() { f.write_str("ideal") } else { f.write_str(&words.join(",")) }
    }
}

/// A number in the largest unit in which it is an integer.
fn print(value: u64, units: &[(&str, u64)]) -> String {
    let whole = units.iter().filter(|(_, scale)| *scale <= value.max(1) && value.is_multiple_of(*scale));
    let (unit, scale) = whole.max_by_key(|(_, scale)| *scale).copied().unwrap_or(("", 1));
    format!("{}{unit}", value / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_refused(text: &str, why: &str) {
        let refused = text.parse::<LinkQuality>().unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }

    #[test]
    fn what_is_no_quality_is_refused_with_the_word_and_the_reason() {
        check_refused("", "'' is no quality of a link: it has no '='");
        check_refused("fast", "'fast' is no quality of a link: it has no '='");
        check_refused("jitter=1ms", "'jitter' is none of delay, rate, bw, queue and loss");
        check_refused("delay=5", "'5' has none of the units ns, us, ms, s");
        check_refused("delay=ms", "'' is not a number");
        check_refused("delay=-5ms", "'-5' is not a number");
        check_refused("delay=1.ms", "'1.' is not a number");
        check_refused("delay=1.2.3s", "'1.2.3' is not a number");
        check_refused("delay=0.5ns", "'0.5' is smaller than the unit");
        check_refused("delay=3601s", "3600 s are the longest delay");
        check_refused("rate=0", "a link of rate 0");
        check_refused("rate=10m", "'10m' is not a number");
        check_refused("rate=99999999999G", "'99999999999' is too large");
        check_refused(
            "queue=68M,loss=1",
            "'queue=68M' is no quality of a link: 67108864 bytes are the longest",
        );
        check_refused("loss=100.1%", "more than 100 per cent");
        check_refused("rate=1M,bw=1", "'bw=1' is no quality of a link: the rate is given twice");
    }

    fn check(text: &str, expected: LinkQuality, printed: &str) {
        let quality: LinkQuality = text.parse().unwrap();
        assert_eq!(quality, expected, "{text}");
        assert_eq!(quality.to_string(), printed);
    }

    #[test]
    fn the_words_are_mininets() {
        let ideal = LinkQuality::default();
        check("ideal", ideal, "ideal");
        check("delay=0ms", ideal, "ideal");
        check(
            "delay=5ms,rate=10M,queue=100k,loss=1%",
            LinkQuality {
                delay: Duration::from_millis(5),
                rate_bits_per_s: Some(10_000_000),
                queue_bytes: 100_000,
                loss_ppm: 10_000,
            },
            "delay=5ms,rate=10M,queue=100k,loss=1%",
        );
        check("bw=0.5", LinkQuality { rate_bits_per_s: Some(500_000), ..ideal }, "rate=500k");
        check("delay=1.5ms", LinkQuality { delay: Duration::from_micros(1500), ..ideal }, "delay=1500us");
        check("loss=0.0125", LinkQuality { loss_ppm: 125, ..ideal }, "loss=0.0125%");
        check("queue=0", LinkQuality { queue_bytes: 0, ..ideal }, "queue=0");
    }

    #[test]
    fn a_frame_keeps_the_link_busy_for_as_long_as_its_bits_take() {
        let at = |words: &str| words.parse::<LinkQuality>().unwrap().serialisation(1500);
        assert_eq!(at("delay=5ms"), Duration::ZERO);
        assert_eq!(at("rate=10M"), Duration::from_micros(1200));
        assert_eq!(at("rate=7G"), Duration::from_nanos(1715), "never too short");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(
            nanoseconds in 0..=3_600_000_000_000u64,
            rate_bits_per_s in prop::option::of(1u64..),
            queue_bytes in 0..=QUEUE_MAX_BYTES,
            loss_ppm in 0..=LOSS_ALL_PPM,
        ) {
            let delay = Duration::from_nanos(nanoseconds);
            let quality = LinkQuality { delay, rate_bits_per_s, queue_bytes, loss_ppm };
            prop_assert_eq!(quality.to_string().parse::<LinkQuality>().unwrap(), quality);
        }

        #[test]
        fn no_words_make_it_panic(text in ".{0,40}", value in "[0-9.]{0,25}[a-zA-Z%]{0,2}") {
            let _ = text.parse::<LinkQuality>();
            for name in ["delay", "rate", "bw", "queue", "loss"] {
                let _ = format!("{name}={value}").parse::<LinkQuality>();
            }
        }
    }
}
